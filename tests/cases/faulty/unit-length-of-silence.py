# case: unit-length-of-silence
# kind: nan
# phase: forward
# op: aten::div
# module: tower.unit
# step: 2
# note: a caption of unknown words only has the embedding 0 and 0/0 is NaN; use F.normalize, whose eps guards
#   the norm. The tower runs twice a step and only its second call is at fault
import torch
from torch import nn


class Unit(nn.Module):
    def forward(self, v):
        length = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
        return v / length  # <-- origin


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(20, 6, mode="sum", padding_idx=0)
        self.unit = Unit()

    def forward(self, ids):
        return self.unit(self.words(ids))


class TwoSides(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = Tower()
        self.heat = nn.Parameter(torch.tensor(1.0))

    def forward(self, left, right):
        return self.heat.exp() * self.tower(left) @ self.tower(right).t()


torch.manual_seed(0)
net = TwoSides()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    left, right = torch.randint(1, 20, (2, 5, 4))
    if step == 2:
        right[3] = 0
    loss = nn.functional.cross_entropy(net(left, right), torch.arange(5))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
