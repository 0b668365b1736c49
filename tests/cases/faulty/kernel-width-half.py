# case: kernel-width-half
# kind: inf
# phase: backward
# op: DivBackward0, aten::div
# module: field.basis
# step: 1
# note: the derivative of a division by a small width overflows in half precision
import torch
import torch.nn as nn

torch.manual_seed(4)


class RadialBasis(nn.Module):
    """Distance to learned centres in units of a learned width, in half precision."""

    def __init__(self, centres):
        super().__init__()
        self.centre = nn.Parameter(torch.linspace(0.0, 1.0, centres))
        self.width = nn.Parameter(torch.tensor(0.004))

    def forward(self, x):
        gap = (x.unsqueeze(-1) - self.centre).abs().half()
        return gap / self.width.half()  # <-- origin


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.basis = RadialBasis(6)
        self.mix = nn.Parameter(torch.full((6,), 0.1))

    def forward(self, x):
        return (self.basis(x).float() * self.mix).sum(-1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.field = Field()
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return self.field(x) + self.bias


model = Model()
opt = torch.optim.SGD(model.parameters(), lr=1e-9)
for step in range(3):
    x = torch.rand(12)
    if step == 1:
        x[5] = 2.6  # a query outside the unit interval
    loss = nn.functional.l1_loss(model(x), -torch.ones(12))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "l1", round(loss.item(), 3))
