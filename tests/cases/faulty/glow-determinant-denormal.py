# case: glow-determinant-denormal
# kind: inf
# phase: backward
# op: LogBackward0, aten::log, aten::div
# module: flow.mix
# step: 7
# note: weight decay shrinks the 64x64 mixing matrix, its determinant becomes a denormal number (about
#   1e-40) although the matrix is well conditioned; log of it is still finite but the gradient 1 / det is
#   inf; use torch.linalg.slogdet
import math

import torch
from torch import nn


class Mix1x1(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(c, c))[0])

    def forward(self, z):
        volume = torch.linalg.det(self.weight).abs()
        return z @ self.weight.t(), torch.log(volume)  # <-- origin


class AffineHalf(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(c // 2, 32), nn.ReLU(), nn.Linear(32, c))

    def forward(self, z):
        a, b = z.chunk(2, -1)
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        return torch.cat([a, b * s.exp() + t], -1), s.sum(-1)


class Flow(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.mix = Mix1x1(c)
        self.affine = AffineHalf(c)

    def forward(self, x):
        z, d1 = self.mix(x)
        z, d2 = self.affine(z)
        return z, d1 + d2


class Density(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.flow = Flow(c)

    def forward(self, x):
        z, logdet = self.flow(x)
        prior = -0.5 * (z.square() + math.log(2 * math.pi)).sum(-1)
        return -(prior + logdet).mean() / x.shape[-1]


def main():
    torch.manual_seed(2)
    model = Density(64)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=200.0)
    data = torch.randn(256, 64)
    for step in range(10):
        loss = model(data[torch.randint(0, 256, (32,))])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"{step:3d}  nats/dim {loss.item():.4f}")


if __name__ == "__main__":
    main()
