# case: late-mask-chi-square
# kind: inf
# phase: forward
# op: aten::div
# module: ''
# step: 2
# note: points without a measured error have sigma 0; they are masked out after the square, so the loss is
#   finite but the square's backward is 0 * inf; select before dividing
import torch
from torch import nn

torch.manual_seed(7)
curve = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(curve.parameters(), lr=1e-3)


def chi_square(model, y, sigma):
    pull = (model - y) / sigma  # <-- origin
    return (pull * pull)[sigma > 0].mean()


for run in range(4):
    t = torch.linspace(0, 1, 11)[:, None]
    y = torch.sin(4 * t) + 0.1 * torch.randn(11, 1)
    sigma = torch.full((11, 1), 0.5)
    if run == 2:
        sigma[3:5] = 0.0
    loss = chi_square(curve(t), y, sigma)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"run {run} chi2 {loss.item():.4f}")
