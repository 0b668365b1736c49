# case: per-sample-gradient-root
# kind: inf
# phase: backward
# op: SqrtBackward0, aten::sqrt, aten::div
# module: ''
# step: 1
# note: vmap(grad) of a root-error loss meets a sample with exactly zero error; add eps under the root
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(2)
net = nn.Linear(3, 2)


def root_error(weights, x, y):
    gap = functional_call(net, weights, (x,)) - y
    return torch.sqrt(gap.square().sum())  # <-- origin


def private_step(x, y, rate=0.05):
    weights = {k: v.detach() for k, v in net.named_parameters()}
    each = vmap(grad(root_error), in_dims=(None, 0, 0))(weights, x, y)
    with torch.no_grad():
        for name, p in net.named_parameters():
            noise = 0.01 * torch.randn_like(p)
            p.sub_(rate * (each[name].mean(0) + noise))
    return vmap(root_error, in_dims=(None, 0, 0))(weights, x, y).mean()


for step in range(3):
    x = torch.randn(6, 3)
    y = torch.randn(6, 2)
    if step == 1:
        x[3] = 0.0
        y[3] = net.bias.detach()
    print(step, private_step(x, y).item())
