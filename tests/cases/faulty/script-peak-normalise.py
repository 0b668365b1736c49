# case: script-peak-normalise
# kind: nan
# phase: forward
# op: aten::div
# module: frontend
# step: 2
# note: a silent clip has peak 0 and the scripted function divides 0 by 0; clamp the peak
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


@torch.jit.script
def peak_normalise(wave: torch.Tensor) -> torch.Tensor:
    peak = wave.abs().amax(-1, keepdim=True)
    return wave / peak  # <-- seen


class Frontend(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 9, stride=4)

    def forward(self, wave):
        level = peak_normalise(wave)  # <-- origin
        return F.gelu(self.conv(level))


class KeywordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = Frontend()
        self.out = nn.Linear(8, 4)

    def forward(self, wave):
        return self.out(self.frontend(wave).mean(-1))


def clips(step):
    wave = torch.randn(6, 1, 120)
    if step == 2:
        wave[3] = 0.0
    return wave, torch.randint(0, 4, (6,))


torch.manual_seed(0)
net = KeywordNet()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    wave, word = clips(step)
    loss = F.cross_entropy(net(wave), word)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, "ce", loss.item())
