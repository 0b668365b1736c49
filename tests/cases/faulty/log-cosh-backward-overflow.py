# case: log-cosh-backward-overflow
# kind: inf
# phase: backward
# op: aten::sinh, aten::cosh, LogCoshBackward
# module: ''
# step: 2
# note: the hand-written slope sinh / cosh overflows to inf / inf beyond 89, although the loss itself was
#   written safely; return tanh
import torch
from torch import nn


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gap):
        ctx.save_for_backward(gap)
        size = gap.abs()
        return size + torch.log1p(torch.exp(-2 * size)) - 0.6931

    @staticmethod
    def backward(ctx, grad):
        (gap,) = ctx.saved_tensors
        return grad * (gap.sinh() / gap.cosh())  # <-- origin


torch.manual_seed(1)
net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(4):
    x = torch.randn(7, 2)
    y = x.sum(1, keepdim=True)
    if step == 2:
        y[3] += 250.0  # a mislabelled sample
    loss = LogCosh.apply(net(x) - y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
