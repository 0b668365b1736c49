# case: decay-on-leaf
# run: python decay-on-leaf.py (exit status 1)
# kind: error
# phase: optimizer
# op: aten::mul_
# module:
# step: 0
# note: the hand-written weight decay multiplies parameters in place while gradients are recorded; put it
#   under torch.no_grad()
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def shrink(model, rate):
    for p in model.parameters():
        p *= 1 - rate  # <-- origin


for step in range(3):
    loss = net(torch.randn(5, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    shrink(net, 0.01)
    print(step, loss.item())
