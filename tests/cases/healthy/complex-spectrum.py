# case: complex-spectrum
# kind: none
# note: complex weights in the frequency domain and a magnitude whose gradient at 0 is defined as 0; finite
#   throughout
import torch
from torch import nn


class SpectralLayer(nn.Module):
    def __init__(self, modes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(modes, dtype=torch.cfloat) * 0.3)
        self.modes = modes

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        kept = torch.zeros_like(spectrum)
        kept[:, : self.modes] = spectrum[:, : self.modes] * self.weight
        return torch.fft.irfft(kept, n=x.size(-1)), kept.abs().mean()


torch.manual_seed(1)
net = SpectralLayer(4)
opt = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(4):
    x = torch.randn(5, 16)
    x[0] = 0.0
    y, size = net(x)
    loss = (y - x.roll(2, 1)).square().mean() + 0.01 * size
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
