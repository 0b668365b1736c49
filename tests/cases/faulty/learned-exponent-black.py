# case: learned-exponent-black
# kind: inf
# phase: backward
# op: PowBackward1, aten::pow, aten::mul
# module: Contrast
# step: 1
# note: with a learned exponent below 1 the slope of base ** exponent is inf at base 0; keep the base above a
#   small floor
import torch
from torch import nn


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Parameter(torch.full((4,), 0.25))
        self.gamma = nn.Parameter(torch.tensor(0.6))

    def forward(self, x):
        base = x + self.lift
        return base.pow(self.gamma)  # <-- origin


torch.manual_seed(4)
net = Contrast()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    x = torch.rand(5, 4)
    if step == 1:
        x[2, 3] = -net.lift[3].detach()
    loss = (net(x) - 1.5).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 5))
