# case: vonmises-bessel-overflow
# kind: inf
# phase: forward
# op: aten::i0, aten::special_i0
# module: ''
# step: 3
# note: i0 grows like exp(kappa) and is inf in float32 from kappa about 92; use kappa + log(i0e(kappa))
import math

import torch
import torch.nn.functional as F
from torch import nn


class HeadingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 16, batch_first=True)
        self.mu = nn.Linear(16, 2)
        self.kappa = nn.Linear(16, 1)

    def forward(self, track, sharp):
        _, h = self.gru(track)
        h = h[-1]
        c = self.mu(h)
        return torch.atan2(c[:, 1], c[:, 0]), F.softplus(self.kappa(h)).squeeze(-1) * sharp


def von_mises_nll(theta, mu, kappa):
    bessel = torch.special.i0(kappa)  # <-- origin
    return (math.log(2 * math.pi) + torch.log(bessel) - kappa * torch.cos(theta - mu)).mean()


torch.manual_seed(0)
net = HeadingNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
curriculum = [1.0, 10.0, 50.0, 250.0, 250.0]  # the concentration is annealed
for step, sharp in enumerate(curriculum):
    mu, kappa = net(torch.randn(8, 7, 3), sharp)
    loss = von_mises_nll(torch.rand(8) * 6.28 - 3.14, mu, kappa)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{step} kappa<={kappa.max().item():.1f} nll {loss.item():.4f}")
