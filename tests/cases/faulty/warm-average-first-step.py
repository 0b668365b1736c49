# case: warm-average-first-step
# kind: inf
# phase: optimizer
# op: aten::reciprocal, aten::div, aten::mul
# module: fc, ''
# step: 0
# note: the averaged copy moves by (1 - d) / (1 - d ** t) with t = 0, which is inf; count t from 1. Training
#   itself stays healthy, only the copy that is evaluated is lost
import copy

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


class Average:
    def __init__(self, net, decay):
        self.copy = copy.deepcopy(net).requires_grad_(False)
        self.decay, self.t = decay, torch.tensor(0.0)

    @torch.no_grad()
    def update(self, net):
        share = (1 - self.decay) / (1 - self.decay**self.t)  # <-- origin
        for slot, p in zip(self.copy.parameters(), net.parameters(), strict=True):
            slot.add_(share * (p - slot))
        self.t += 1


torch.manual_seed(6)
net = Net()
average = Average(net, decay=0.9)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(6, 3)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    average.update(net)
    print(step, loss.item(), "copy ok:", bool(average.copy.fc.weight.isfinite().all()))
