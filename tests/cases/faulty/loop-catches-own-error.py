# case: loop-catches-own-error
# kind: inf
# phase: forward
# op: aten::reciprocal
# module: lens
# step: 2
# note: 1 / 0 of a distance; the loop raises and catches its own FloatingPointError on a bad gradient and goes
#   on, so that nothing but a counter shows the fault; add eps to the distance
import torch
from torch import nn


class Dioptre(nn.Module):
    def forward(self, metres):
        return metres.reciprocal()  # <-- origin


class Glasses(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
        self.lens = Dioptre()

    def forward(self, metres):
        return self.fc(self.lens(metres))


def update(net, opt, metres):
    opt.zero_grad()
    loss = nn.functional.huber_loss(net(metres), torch.ones(len(metres), 1))
    loss.backward()
    if not all(p.grad.isfinite().all() for p in net.parameters()):
        raise FloatingPointError("bad gradient")
    opt.step()
    return loss.item()


torch.manual_seed(7)
net = Glasses()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
failures = 0
for step in range(5):
    metres = torch.rand(6, 2) + 0.3
    if step == 2:
        metres[4, 1] = 0.0
    try:
        print(step, update(net, opt, metres))
    except FloatingPointError:
        failures += 1
print("failures", failures)
