# case: own-clipping-zero-gradient
# kind: inf
# phase: optimizer
# op: aten::reciprocal, aten::div, aten::mul
# module: ''
# step: 2
# note: hand-written clipping scales by limit / norm even when the norm is 0, and 0 * inf is NaN in every
#   gradient; scale only when norm > limit
import torch
from torch import nn


def rescale(params, limit):
    grads = [p.grad for p in params if p.grad is not None]
    norm = torch.sqrt(sum(g.square().sum() for g in grads))
    factor = limit / norm  # <-- origin
    for g in grads:
        g.mul_(factor)


def main():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(4):
        x = torch.randn(6, 4)
        good, poor = net(x).unbind(1)
        margin = 0.5 if step != 2 else -50.0
        loss = torch.relu(margin - (good - poor)).mean()  # no violation at all: loss and gradient are 0
        opt.zero_grad()
        loss.backward()
        rescale(net.parameters(), 1.0)
        opt.step()
        print(step, loss.item(), bool(net[0].weight.isfinite().all()))


if __name__ == "__main__":
    main()
