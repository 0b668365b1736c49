# case: curvature-penalty-double-backward
# kind: nan, inf
# phase: backward
# op: PowBackward0, aten::pow, aten::mul
# module: energy
# step: 1
# note: |x| ** 1.5 has slope 0 at 0 but infinite curvature, and the force penalty differentiates twice; the
#   origin is the forward line of the first derivative's parent; use a smooth power
import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3, bias=False)

    def forward(self, pos):
        stretch = self.fc(pos).square().sum(1)
        return stretch**1.5 - 0.1 * stretch  # <-- origin


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = Energy()
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, pos):
        return self.energy(pos).sum() + self.offset


torch.manual_seed(8)
field = Field()
opt = torch.optim.SGD(field.parameters(), lr=1e-3)
for step in range(3):
    pos = torch.randn(5, 2)
    if step == 1:
        pos[0] = 0.0
    pos.requires_grad_(True)
    energy = field(pos)
    (force,) = torch.autograd.grad(energy, pos, create_graph=True)
    loss = (force - 1).square().mean() + 0.01 * energy.squeeze() ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
