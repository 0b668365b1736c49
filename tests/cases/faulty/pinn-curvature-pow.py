# case: pinn-curvature-pow
# kind: inf
# phase: backward
# op: PowBackward0, aten::pow
# module: film
# step: 1
# note: x ** 1.5 and its slope are finite at 0 but its second derivative is not: the second autograd.grad
#   goes through the x ** 0.5 that the first one made (PowBackward0 of this line), and 0 ** -0.5 is inf;
#   sample inside the domain or use another profile
"""Thin-film equation: u'' = f on (0, 1], boundary layer u ~ x^1.5."""

import torch
from torch import nn
from torch.autograd import grad


class BoundaryLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        return self.level * x.pow(1.5)  # <-- origin


class Film(nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
        self.film = BoundaryLayer()

    def forward(self, x):
        return self.film(x) + x * self.smooth(x)


def residual(net, x):
    u = net(x)
    (ux,) = grad(u.sum(), x, create_graph=True)
    (uxx,) = grad(ux.sum(), x, create_graph=True)
    return uxx - torch.sin(3 * x)


def main():
    torch.manual_seed(0)
    net = Film()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for it in range(4):
        x = 0.05 + 0.95 * torch.rand(32, 1)
        if it == 1:
            x[0] = 0.0  # this round also visits the wall
        x.requires_grad_(True)
        loss = residual(net, x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"it {it} residual {loss.item():.4f} level {net.film.level.item():.4f}")


if __name__ == "__main__":
    main()
