# case: sinkhorn-kernel-underflow
# kind: inf
# phase: forward
# op: aten::div
# module: OTLoss
# step: 2
# note: all entries of exp(-C/eps) underflow to 0, so a / (K v) is a / 0 = inf and 0 * inf = NaN one line
#   later; iterate in the log domain
"""Match a cloud of predicted key points to the observed ones with entropic transport."""

import torch
from torch import nn


class OTLoss(nn.Module):
    def __init__(self, eps=0.05, rounds=15):
        super().__init__()
        self.eps, self.rounds = eps, rounds

    def forward(self, x, y):
        cost = (x[:, None] - y[None]).square().sum(-1)
        kernel = torch.exp(-cost / self.eps)
        a = torch.full((x.shape[0],), 1 / x.shape[0])
        b = torch.full((y.shape[0],), 1 / y.shape[0])
        v = torch.ones_like(b)
        for _ in range(self.rounds):
            reach = kernel @ v
            u = a / reach  # <-- origin
            v = b / (kernel.t() @ u)
        plan = u[:, None] * kernel * v[None]
        return (plan * cost).sum()


class Keypoints(nn.Module):
    def __init__(self, n=6):
        super().__init__()
        self.n = n
        self.trunk = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 2 * n))

    def forward(self, f):
        return torch.sigmoid(self.trunk(f)).view(self.n, 2)


torch.manual_seed(11)
net, criterion = Keypoints(), OTLoss()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(5):
    feat = torch.randn(10)
    seen = torch.rand(6, 2)
    if step == 2:
        seen = seen + torch.tensor([3.0, 0.0])  # annotated in the wrong tile
    loss = criterion(net(feat), seen)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step}  transport cost {loss.item():.5f}")
