# case: functional-per-sample
# kind: none
# note: vmap, grad, jacrev and functional_call over a model without any optimizer; per-sample norms carry an
#   eps
import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, vmap

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
weights = {k: v.detach().clone() for k, v in net.named_parameters()}


def sample_loss(weights, x, y):
    gap = functional_call(net, weights, (x,)) - y
    return (gap.square().sum() + 1e-8).sqrt()


for step in range(4):
    x, y = torch.randn(6, 3), torch.randn(6, 2)
    each = vmap(grad(sample_loss), in_dims=(None, 0, 0))(weights, x, y)
    norm = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    factor = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    for name, g in each.items():
        share = factor.view(-1, *[1] * (g.dim() - 1))
        weights[name] = weights[name] - 0.1 * (share * g).mean(0)
    slope = vmap(jacrev(lambda v: functional_call(net, weights, (v,))))(x)
    loss = vmap(sample_loss, in_dims=(None, 0, 0))(weights, x, y).mean()
    print(step, loss.item(), slope.abs().max().item())
