# case: lgamma-zero-freedom
# kind: inf
# phase: forward
# op: aten::lgamma
# module: ''
# step: 1
# note: the degrees of freedom come out of a ReLU and reach exactly 0, where log-gamma is infinite; use
#   softplus plus a floor
import torch
from torch import nn

torch.manual_seed(2)
net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)


def student_nll(mu, nu, y):
    const = torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2)  # <-- origin
    return (const + (nu + 1) / 2 * torch.log1p((y - mu).square() / (nu + 1.0))).mean()


for step in range(3):
    x = torch.randn(12, 2)
    mu, raw = net(x).unbind(1)
    nu = torch.relu(raw + 3.0 if step != 1 else raw)  # the offset was lost in a refactoring
    loss = student_nll(mu, nu, torch.randn(12))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{step} {loss.item():.5f}")
