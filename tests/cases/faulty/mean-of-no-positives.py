# case: mean-of-no-positives
# kind: nan
# phase: forward
# op: aten::mean
# module: ''
# step: 2
# note: no anchor of this image overlaps an object, and the mean of an empty tensor is NaN; use sum() /
#   max(count, 1)
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Conv1d(2, 6, 3, padding=1)
        self.box = nn.Conv1d(6, 2, 1)
        self.objectness = nn.Conv1d(6, 1, 1)

    def forward(self, x):
        h = torch.relu(self.trunk(x))
        return self.box(h), self.objectness(h).squeeze(1)


def detection_loss(box, score, target, overlap):
    positive = overlap > 0.5
    gap = (box - target).abs().sum(1)
    regression = gap[positive].mean()  # <-- origin
    return regression + nn.functional.binary_cross_entropy_with_logits(score, positive.float())


torch.manual_seed(10)
net = Detector()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for image in range(4):
    overlap = torch.rand(3, 12)
    if image == 2:
        overlap *= 0.4
    box, score = net(torch.randn(3, 2, 12))
    loss = detection_loss(box, score, torch.randn(3, 2, 12), overlap)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("image", image, "loss", loss.item())
