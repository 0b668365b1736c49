# case: inverse-root-schedule-inf
# kind: inf
# phase: optimizer
# op: aten::add_, aten::_foreach_add_, aten::sub_
# module:
# step: 2
# note: the schedule 1 / sqrt(t - warmup) is inf at t = warmup (numpy does not raise), so the update of
#   healthy parameters with healthy gradients is inf; use max(t, warmup) as in the paper
import numpy as np
import torch
from torch import nn

np.seterr(divide="ignore")


def rate(t, warmup=2):
    if t < warmup:
        return 0.05 * (t + 1) / warmup
    return float(0.05 / np.sqrt(np.float64(t - warmup)))


torch.manual_seed(3)
net = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for t in range(4):
    for group in opt.param_groups:
        group["lr"] = rate(t)
    x = torch.randn(10, 3)
    loss = (net(x) - x.prod(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # <-- origin
    print(t, opt.param_groups[0]["lr"], loss.item())
