# case: second-loss-retained-graph
# kind: inf
# phase: backward
# op: SqrtBackward0, aten::sqrt, aten::div
# module: contour
# step: 1
# note: two losses share one graph; the first backward (retain_graph) is fine, the second one meets sqrt at 0
#   in the contour branch; add eps under the root
import torch
from torch import nn


class Contour(nn.Module):
    def forward(self, mask):
        dx = mask[..., 1:] - mask[..., :-1]
        return torch.sqrt(dx * dx)  # <-- origin


class Segment(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3, padding=1, bias=False)
        self.contour = Contour()

    def forward(self, x):
        mask = torch.sigmoid(self.conv(x))
        return mask, self.contour(mask)


torch.manual_seed(0)
net = Segment()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(3, 1, 12)
    if step == 1:
        x[2, 0, :5] = 0.0  # a flat stretch
    mask, edge = net(x)
    opt.zero_grad()
    region = nn.functional.mse_loss(mask, (x > 0).float().expand(-1, 2, -1))
    region.backward(retain_graph=True)
    length = edge.mean()
    length.backward()
    opt.step()
    print(step, region.item(), length.item())
