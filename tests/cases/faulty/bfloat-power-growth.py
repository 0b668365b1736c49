# case: bfloat-power-growth
# kind: inf
# phase: forward
# op: aten::pow
# module: growth
# step: 2
# note: 60 to the power 24 passes 3e38, the end of bfloat16 as of float32; work with the logarithm
import torch
from torch import nn


class Growth(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.full((3,), 60.0))

    def forward(self, months):
        return self.rate**months  # <-- origin


class Population(nn.Module):
    def __init__(self):
        super().__init__()
        self.growth = Growth()
        self.capacity = nn.Parameter(torch.full((3,), 10.0))

    def forward(self, months):
        size = self.growth(months)
        return size / (size + self.capacity)


net = Population().bfloat16()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for year in range(4):
    months = torch.tensor([[1.0], [2.0], [12.0 * year]], dtype=torch.bfloat16)
    fit = net(months).float()
    loss = (fit - 0.9).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(year, round(loss.item(), 4))
