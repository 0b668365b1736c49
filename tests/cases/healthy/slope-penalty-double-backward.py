# case: slope-penalty-double-backward
# kind: none
# note: a gradient penalty through a double backward; the norm of an exactly zero slope has the subgradient 0
#   and stays finite
import torch
from torch import nn

torch.manual_seed(4)
field = nn.Sequential(nn.Linear(2, 8), nn.Softplus(beta=10), nn.Linear(8, 1))
opt = torch.optim.Adam(field.parameters(), lr=1e-2)
for step in range(4):
    p = torch.randn(10, 2, requires_grad=True)
    inside = (p.detach().norm(dim=1, keepdim=True) < 1.5).float()
    value = field(p) * inside  # the slope outside is exactly 0
    (slope,) = torch.autograd.grad(value.sum(), p, create_graph=True)
    length = torch.linalg.vector_norm(slope, dim=1)
    loss = ((length - 1) * inside[:, 0]).square().mean() + 0.1 * value.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
