# case: trust-ratio-frozen-layer
# kind: inf
# phase: optimizer
# op: aten::div
# module: 2, ''
# step: 1
# note: a LARS-like optimizer divides |p| by |g|, and a loss that ignores the last layer for one step leaves
#   |g| = 0; use a ratio of 1 where a norm is 0
import torch
from torch import nn


class LayerwiseSGD(torch.optim.Optimizer):
    def __init__(self, params, lr, trust=0.01):
        super().__init__(params, {"lr": lr, "trust": trust})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                ratio = group["trust"] * p.norm() / p.grad.norm()  # <-- origin
                p.sub_(group["lr"] * ratio * p.grad)


torch.manual_seed(5)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
opt = LayerwiseSGD(net.parameters(), lr=1.0)
for epoch in range(3):
    x = torch.randn(8, 3)
    h = net[1](net[0](x))
    gate = 0.0 if epoch == 1 else 1.0  # one epoch of feature training only
    loss = gate * net[2](h).square().mean() + (h.mean() - 0.1).square()
    opt.zero_grad(set_to_none=False)
    loss.backward()
    opt.step()
    print(epoch, loss.item(), [bool(p.isfinite().all()) for p in net.parameters()])
