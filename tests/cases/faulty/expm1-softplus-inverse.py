# case: expm1-softplus-inverse
# kind: inf
# phase: forward
# op: aten::expm1
# module: flow.inverse
# step: 1
# note: expm1 of values above 88 overflows float32; use x + log(-expm1(-x)) for the inverse of softplus
import torch
from torch import nn


class SoftplusInverse(nn.Module):
    def forward(self, x):
        grown = torch.expm1(x)  # <-- origin
        return torch.log(grown)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(4))
        self.inverse = SoftplusInverse()

    def forward(self, x):
        return self.inverse(x + self.shift.exp())


class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = Flow()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        return self.mix(self.flow(x))


torch.manual_seed(1)
model = Density()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(3):
    x = torch.rand(12, 4) * (10.0 if it != 1 else 400.0) + 0.1
    loss = 0.5 * model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(it, loss.item())
