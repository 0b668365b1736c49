# case: state-space-zero-pole
# kind: nan
# phase: forward
# op: aten::div
# module: mixer.kernel
# step: 0
# note: a pole at 0 needs the limit, not the quotient
import math

import torch
import torch.nn as nn

torch.manual_seed(0)


class DiagonalKernel(nn.Module):
    """Convolution kernel of a diagonal state space, zero-order hold."""

    def __init__(self, channels, states=4):
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(-0.1, 0.8, states).repeat(channels, 1))
        self.register_buffer("freq", math.pi * torch.arange(states).float())
        self.c = nn.Parameter(torch.randn(channels, states, dtype=torch.cfloat) * 0.3)
        self.log_dt = nn.Parameter(torch.full((channels, 1), -2.0))

    def forward(self, length):
        pole = torch.complex(-torch.relu(self.decay), self.freq.expand_as(self.decay))
        step = pole * self.log_dt.exp()
        gain = (torch.exp(step) - 1.0) / pole  # <-- origin
        powers = torch.exp(step.unsqueeze(-1) * torch.arange(length))
        return torch.einsum("cs,csl->cl", self.c * gain, powers).real


class Mixer(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.kernel = DiagonalKernel(channels)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x):  # batch, length, channels
        n = x.size(1)
        k = torch.fft.rfft(self.kernel(n), n=2 * n)
        y = torch.fft.irfft(torch.fft.rfft(x.transpose(1, 2), n=2 * n) * k, n=2 * n)[..., :n]
        return self.proj(torch.nn.functional.gelu(y.transpose(1, 2)))


class SequenceModel(nn.Module):
    def __init__(self, channels=5):
        super().__init__()
        self.inp = nn.Linear(1, channels)
        self.mixer = Mixer(channels)
        self.out = nn.Linear(channels, 1)

    def forward(self, x):
        h = self.inp(x)
        return self.out(h + self.mixer(h))


model = SequenceModel()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randn(6, 20, 1)
    loss = (model(x) - x.cumsum(1) / 5).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "mse", loss.item())
