# case: fan-in-zero-init
# kind: inf
# phase: parameter
# op: aten::rsqrt, aten::mul, aten::mul_
# module: expand, ''
# step: 0
# note: the weights are scaled by 1 / sqrt(fan-in) with the fan-in counted from a connection mask, and one
#   output has no connection; clamp the count to 1
import torch
from torch import nn


class Sparse(nn.Module):
    def __init__(self, connect):
        super().__init__()
        self.register_buffer("connect", connect)
        scale = torch.rsqrt(connect.sum(1, keepdim=True))  # <-- origin
        self.weight = nn.Parameter(torch.randn(connect.shape) * scale)

    def forward(self, x):
        return x @ (self.weight * self.connect).t()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        connect = torch.eye(5)[[0, 1, 1, 2, 4]]
        connect[3] = 0.0
        self.expand = Sparse(connect)
        self.out = nn.Linear(5, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.expand(x)))


torch.manual_seed(8)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(2):
    loss = net(torch.randn(6, 5)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
