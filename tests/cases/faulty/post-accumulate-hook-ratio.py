# case: post-accumulate-hook-ratio
# kind: inf
# phase: backward
# op: aten::div, aten::reciprocal
# module: 2, ''
# step: 0
# note: a post-accumulate hook rescales the gradient by 1 / |weight|, and the last bias starts at 0; add an
#   eps. The hook runs inside backward, after the gradient is stored
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
nn.init.zeros_(net[2].bias)


def relative(p):
    ratio = p.grad.norm() / p.detach().norm()  # <-- origin
    p.grad.mul_(ratio.clamp_min(1.0))


for p in net.parameters():
    p.register_post_accumulate_grad_hook(relative)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    loss = net(torch.randn(8, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
