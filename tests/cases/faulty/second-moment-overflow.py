# case: second-moment-overflow
# kind: inf
# phase: optimizer
# op: aten::addcmul_, aten::_foreach_addcmul_
# module:
# step: 2
# note: the square of a gradient of 1e23 does not fit float32, Adam's second moment becomes inf and every
#   later update 0: training stands still with a finite loss; clip before the step
import torch
from torch import nn

torch.manual_seed(7)
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.05)
for step in range(6):
    x = torch.randn(12, 4)
    weight = 1e24 if step == 2 else 1.0  # an exploded importance weight
    loss = weight * (net(x) - x.mean(1, keepdim=True)).abs().mean()
    opt.zero_grad()
    loss.backward()
    old = net.weight.detach().clone()
    opt.step()  # <-- origin
    print(f"step {step} loss {loss.item():.4g} moved {(net.weight - old).abs().max().item():.3g}")
