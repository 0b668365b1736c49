# case: bicubic-variance-stabiliser
# kind: nan
# phase: forward
# op: aten::sqrt
# module: stabilise
# step: 2
# note: bicubic interpolation overshoots below zero beside a bright spot, and the root is taken of it
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)


class Anscombe(nn.Module):
    """Variance stabilising root for photon counts."""

    def forward(self, counts):
        return 2.0 * torch.sqrt(counts + 0.375)  # <-- origin


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.stabilise = Anscombe()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.PReLU(), nn.Conv2d(8, 1, 3, padding=1))

    def forward(self, low):
        up = F.interpolate(low, scale_factor=2, mode="bicubic", align_corners=False)
        base = self.stabilise(up)
        return base + self.body(base)


def scene(step):
    x = torch.linspace(0, 3.14, 8)
    smooth = 5.0 + 3.0 * torch.sin(x)[:, None] * torch.sin(x)[None, :]
    low = smooth.expand(4, 1, 8, 8).clone() + 0.1 * torch.rand(4, 1, 8, 8)
    if step >= 2:
        low[1] = 0.0
        low[1, 0, 2:5, 3:6] = 40.0  # a bright star on black sky
    high = F.interpolate(low, scale_factor=2, mode="nearest")
    return low, 2.0 * (high + 0.375).sqrt()


net = SuperResolution()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
ema = {k: v.clone() for k, v in net.state_dict().items()}
for step in range(4):
    low, high = scene(step)
    loss = F.l1_loss(net(low), high)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].lerp_(v, 0.1)
    print("step", step, "l1", loss.item())
