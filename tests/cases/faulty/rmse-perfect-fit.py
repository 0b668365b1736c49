# case: rmse-perfect-fit
# kind: inf
# phase: backward
# op: SqrtBackward0, aten::sqrt, aten::div
# module: ''
# step: 0
# note: a zero-initialised output on zero targets has RMSE 0, where the square root's slope is infinite; add
#   eps under the root
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
nn.init.zeros_(net[2].weight)
nn.init.zeros_(net[2].bias)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def rmse(a, b):
    return (a - b).square().mean().sqrt()  # <-- origin


for epoch in range(3):
    target = torch.randn(7, 2) * (epoch > 0)  # the first epoch is a calibration with zeros
    loss = rmse(net(torch.randn(7, 3)), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, loss.item())
