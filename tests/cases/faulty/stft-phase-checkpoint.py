# case: stft-phase-checkpoint
# kind: nan
# phase: forward
# op: aten::div
# module: mask.phase
# step: 2
# note: a silent clip has complex bins that are exactly 0 and 0 / |0| is NaN + NaN i; non-reentrant
#   checkpointing runs the line in the normal forward first, and that is where it is born; use torch.polar
#   / sgn, or add eps to the magnitude
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class UnitPhase(nn.Module):
    def forward(self, spec):
        return spec / spec.abs()  # <-- origin


class MaskNet(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.inp = nn.Linear(bins, 24)
        self.out = nn.Linear(24, bins)
        self.phase = UnitPhase()

    def forward(self, spec):
        magnitude = spec.abs()
        gain = torch.sigmoid(self.out(torch.relu(self.inp(magnitude))))
        return gain * magnitude * self.phase(spec)


class Enhancer(nn.Module):
    def __init__(self, n_fft=16):
        super().__init__()
        self.n_fft = n_fft
        self.pre = nn.Conv1d(1, 1, 1, bias=False)
        self.mask = MaskNet(n_fft // 2 + 1)
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wave):
        x = self.pre(wave[:, None])[:, 0]
        spec = torch.stft(x, self.n_fft, window=self.window, return_complex=True).transpose(1, 2)
        clean = checkpoint(self.mask, spec, use_reentrant=False).transpose(1, 2)
        return torch.istft(clean, self.n_fft, window=self.window, length=wave.shape[-1])


def main():
    torch.manual_seed(0)
    net = Enhancer()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    t = torch.arange(128) / 8
    for step in range(4):
        clean = torch.sin(t * (1 + torch.rand(4, 1)))
        noisy = clean + 0.3 * torch.randn(4, 128)
        if step == 2:
            clean[1], noisy[1] = 0.0, 0.0
        loss = (net(noisy) - clean).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} l1 {loss.item():.4f}")


main()
