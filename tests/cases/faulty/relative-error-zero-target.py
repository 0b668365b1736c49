# case: relative-error-zero-target
# kind: inf
# phase: forward
# op: aten::div
# module: ''
# step: 2
# note: a percentage error divides by a target that is exactly 0 once; divide by |target| + eps
import torch
from torch import nn

torch.manual_seed(0)
forecaster = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 1))
opt = torch.optim.SGD(forecaster.parameters(), lr=0.02)
history = torch.randn(4, 10, 3)
sales = torch.rand(4, 10, 1) + 0.5
sales[2, 6] = 0.0  # a day on which the shop was closed


def percentage_error(guess, truth):
    return ((guess - truth) / truth).abs().mean()  # <-- origin


for week in range(4):
    opt.zero_grad()
    loss = percentage_error(forecaster(history[week]), sales[week])
    loss.backward()
    opt.step()
    print(f"week {week}: {loss.item():.3f}")
