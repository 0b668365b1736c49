# case: half-power-distance
# kind: inf
# phase: backward
# op: PowBackward0, aten::pow
# module: kernel
# step: 2
# note: ** 0.5 has an infinite slope at distance 0, reached when a point sits on an anchor; use vector_norm or
#   add eps
import torch
from torch import nn


class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.anchor = nn.Parameter(torch.arange(6.0).view(3, 2))

    def forward(self, p):
        d2 = ((p[:, None] - self.anchor) ** 2).sum(-1)
        d = d2**0.5  # <-- origin
        return torch.exp(-d)


class RadialNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = Kernel()
        self.out = nn.Linear(3, 1)

    def forward(self, p):
        return self.out(self.kernel(p))


torch.manual_seed(1)
net = RadialNet()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    p = torch.rand(6, 2) * 5
    if step == 2:
        p[1] = net.kernel.anchor[2].detach()
    loss = (net(p) - p.sum(1, keepdim=True)).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
