# case: half-energy-share
# kind: inf
# phase: forward
# op: aten::square, aten::pow
# module: layers.1.norm
# step: 0
# note: the square of 300 is beyond float16, and the share of the total is inf/inf; scale the features down
#   first or compute the shares in float32
import torch
from torch import nn


class EnergyShare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        energy = x.square()  # <-- origin
        share = energy / (energy.sum(-1, keepdim=True) + 1e-3)
        return x * share * self.gain


class Layer(nn.Module):
    def __init__(self, width, boost):
        super().__init__()
        self.norm = EnergyShare(width)
        self.mlp = nn.Linear(width, width)
        self.boost = boost

    def forward(self, x):
        return x + self.boost * torch.tanh(self.mlp(self.norm(x)))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(8, 900.0), Layer(8, 1.0)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
net = Stack().half()
opt = torch.optim.SGD(net.parameters(), lr=1e-5)
x = torch.randn(5, 8).half()
for step in range(3):
    loss = (net(x).float() - x.float()).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), [g.norm.gain.isfinite().all().item() for g in net.layers])
