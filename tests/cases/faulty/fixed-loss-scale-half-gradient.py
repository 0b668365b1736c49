# case: fixed-loss-scale-half-gradient
# kind: inf
# phase: backward
# op: AddmmBackward0, aten::addmm, aten::mm, aten::sum
# module: out
# step: 2
# note: a constant loss scale of 8192 pushes a weight gradient past 65504 in float16 once an input is large;
#   use GradScaler or lower the scale
import torch
from torch import nn


class HalfNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        h = self.embed(x)
        return self.out(torch.relu(h))  # <-- origin


torch.manual_seed(1)
net = HalfNet().half()
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
SCALE = 8192.0
for step in range(4):
    x = torch.randn(4, 6).half()
    if step == 2:
        x *= 6000
    loss = nn.functional.cross_entropy(net(x).float(), torch.tensor([0, 2, 1, 0]))
    opt.zero_grad()
    (loss * SCALE).backward()
    for p in net.parameters():
        p.grad /= SCALE
    opt.step()
    print(step, round(loss.item(), 3))
