# case: lbfgs-strong-wolfe
# kind: none
# note: L-BFGS with a line search calls its closure many times per step; the fit ends with a vanishing
#   gradient
import torch
from torch import nn

torch.manual_seed(2)
x = torch.linspace(-2, 2, 20)[:, None]
y = torch.sin(x)
net = nn.Sequential(nn.Linear(1, 5), nn.Tanh(), nn.Linear(5, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss = (net(x) - y).square().mean() + 1e-4 * sum(p.square().sum() for p in net.parameters())
    loss.backward()
    return loss


for step in range(4):
    print(step, opt.step(closure).item())
