# case: nerf-opaque-sample
# kind: nan
# phase: backward
# op: LogBackward0, aten::log
# module: renderer
# step: 2
# note: a fully opaque sample has alpha = 1; exp(-inf) = 0 absorbs the forward -inf, which nothing keeps,
#   but the gradient of the log is 0 / 0; add 1e-10 inside the log or use cumprod
import torch
from torch import nn


class VolumeRenderer(nn.Module):
    def forward(self, sigma, colour, delta):
        alpha = 1.0 - torch.exp(-sigma * delta)
        free = 1.0 - alpha
        log_free = torch.log(free)  # <-- origin
        log_trans = torch.cumsum(log_free, dim=-1)
        trans = torch.exp(log_trans)
        trans = torch.cat([torch.ones_like(trans[:, :1]), trans[:, :-1]], -1)
        weight = trans * alpha
        return (weight[..., None] * colour).sum(1)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.density = nn.Linear(32, 1)
        self.colour = nn.Linear(32, 3)
        self.renderer = VolumeRenderer()

    def forward(self, points, delta):
        h = self.trunk(points)
        sigma = nn.functional.softplus(self.density(h)).squeeze(-1)
        return self.renderer(sigma, torch.sigmoid(self.colour(h)), delta)


def rays(n, samples, far):
    origin, heading = torch.randn(n, 1, 3), nn.functional.normalize(torch.randn(n, 1, 3), dim=-1)
    t = torch.linspace(0.5, 4.0, samples)
    delta = torch.full((n, samples), 3.5 / samples)
    if far:
        delta[:, far] = 1e3
    return origin + t[None, :, None] * heading, delta


torch.manual_seed(0)
net = Field()
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
for it in range(4):
    # in the third batch the "infinite" last interval was sorted into the middle
    points, delta = rays(16, 12, far=7 if it == 2 else 0)
    rgb = net(points, delta)
    loss = (rgb - torch.rand(16, 3)).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    print(f"iteration {it}: photometric {loss.item():.4f}")
