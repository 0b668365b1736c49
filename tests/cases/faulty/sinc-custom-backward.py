# case: sinc-custom-backward
# kind: nan
# phase: backward
# op: aten::div, SincBackward
# module: bank
# step: 0
# note: the middle tap of every filter is at t = 0; forward sets sinc(0) = 1, but the hand-written backward
#   divides (x cos x - sin x) by x^2 = 0; guard the backward as well
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Sinc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = torch.where(x == 0, torch.ones_like(x), x)
        return torch.where(x == 0, torch.ones_like(x), torch.sin(safe) / safe)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = (x * torch.cos(x) - torch.sin(x)) / (x * x)  # <-- origin
        return grad * slope


class SincBank(nn.Module):
    """Learned band-pass filters on the raw wave."""

    def __init__(self, filters=4, taps=15):
        super().__init__()
        self.low = nn.Parameter(torch.linspace(0.02, 0.2, filters))
        self.band = nn.Parameter(torch.full((filters,), 0.1))
        self.register_buffer("t", torch.arange(taps).float() - taps // 2)
        self.register_buffer("window", torch.hamming_window(taps))

    def low_pass(self, cut):
        return 2 * cut[:, None] * Sinc.apply(2 * math.pi * cut[:, None] * self.t)

    def forward(self, wave):
        kernel = self.low_pass(self.low + self.band) - self.low_pass(self.low)
        return F.conv1d(wave, (kernel * self.window)[:, None])


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = SincBank()
        self.out = nn.Linear(4, 5)

    def forward(self, wave):
        return self.out(F.avg_pool1d(self.bank(wave).abs(), 20).amax(-1))


torch.manual_seed(0)
net = Speaker()
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for step in range(3):
    loss = F.cross_entropy(net(torch.randn(6, 1, 160)), torch.randint(0, 5, (6,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
