# case: complex-root-companding
# kind: nan
# phase: backward
# op: PowBackward0, aten::pow
# module: analysis.compand
# step: 1
# note: the derivative of a complex root at 0, where the spectrum of silence is
import torch
import torch.nn as nn

torch.manual_seed(8)


class Compand(nn.Module):
    """Power-law companding of a complex spectrum, phase halved with it."""

    def __init__(self, power=0.5):
        super().__init__()
        self.power = power

    def forward(self, spectrum):
        return spectrum**self.power  # <-- origin


class Analysis(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.response = nn.Parameter(torch.randn(bins, dtype=torch.cfloat) * 0.1 + 1.0)
        self.compand = Compand()

    def forward(self, wave):
        spectrum = torch.fft.rfft(wave, norm="ortho") * self.response
        return torch.view_as_real(self.compand(spectrum)).flatten(1)


class KeywordNet(nn.Module):
    def __init__(self, length=32):
        super().__init__()
        bins = length // 2 + 1
        self.analysis = Analysis(bins)
        self.head = nn.Sequential(nn.Linear(2 * bins, 12), nn.ReLU(), nn.Linear(12, 3))

    def forward(self, wave):
        return self.head(self.analysis(wave))


net = KeywordNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(4):
    wave = torch.randn(10, 32)
    if step == 1:
        wave[7] = 0.0  # dead air
    target = torch.randint(0, 3, (10,))
    loss = nn.functional.cross_entropy(net(wave), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{step}: ce {loss.item():.4f}")
