# case: cube-root-dead-branch
# kind: nan, inf
# phase: backward
# op: PowBackward0, aten::pow, aten::mul
# module: tone
# step: 1
# note: where() sends an exact 0 into the unchosen power, whose slope at 0 is inf: 0 * inf; clamp the argument
#   of the power as well
import torch
from torch import nn


class ToneCurve(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3, 1))

    def forward(self, lab):
        t = lab * self.gain
        root = t ** (1 / 3)  # <-- origin
        return torch.where(t > 0.008856, root, 7.787 * t + 16 / 116)


class Grader(nn.Module):
    def __init__(self):
        super().__init__()
        self.tone = ToneCurve()
        self.head = nn.Conv1d(3, 1, 1)

    def forward(self, lab):
        return self.head(self.tone(lab))


torch.manual_seed(3)
net = Grader()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(3):
    pixels = torch.rand(2, 3, 9) + 0.1
    if step == 1:
        pixels[0, :, 4] = 0.0  # one black pixel
    loss = net(pixels).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
