# case: gcc-phat-muted-channel
# kind: nan
# phase: forward
# op: aten::div
# module: front.phat
# step: 2
# note: a cross spectrum of a muted channel is divided by its magnitude of 0
import torch
import torch.nn as nn

torch.manual_seed(0)


class PhaseTransform(nn.Module):
    """Generalised cross correlation with phase transform."""

    def forward(self, left, right):
        n = left.size(-1)
        cross = torch.fft.rfft(left) * torch.fft.rfft(right).conj()
        white = cross / cross.abs()  # <-- origin
        return torch.fft.irfft(white, n=n)


class FrontEnd(nn.Module):
    def __init__(self, lags):
        super().__init__()
        self.phat = PhaseTransform()
        self.lags = lags

    def forward(self, stereo):
        corr = self.phat(stereo[:, 0], stereo[:, 1])
        return torch.cat([corr[:, -self.lags :], corr[:, : self.lags + 1]], dim=-1)


class Locator(nn.Module):
    def __init__(self, lags=6):
        super().__init__()
        self.front = FrontEnd(lags)
        self.net = nn.Sequential(nn.Linear(2 * lags + 1, 24), nn.GELU(), nn.Linear(24, 1))

    def forward(self, stereo):
        return self.net(self.front(stereo)).squeeze(-1)


def recording(batch, index):
    source = torch.randn(batch, 80)
    delay = torch.randint(-4, 5, (batch,))
    right = torch.stack([s.roll(int(d)) for s, d in zip(source, delay, strict=False)])
    stereo = torch.stack([source[:, :64], right[:, :64]], dim=1)
    if index == 2:
        stereo[5, 1] = 0.0  # the second microphone was muted
    return stereo, delay.float()


model = Locator()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for index in range(5):
    stereo, delay = recording(12, index)
    loss = nn.functional.huber_loss(model(stereo), delay)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(f"batch {index}: huber {loss.item():.4f}")
