# case: eigenvectors-of-isotropic
# kind: nan, inf
# phase: backward
# op: LinalgEighBackward0, aten::_linalg_eigh, aten::linalg_eigh
# module: ''
# step: 0
# note: the metric starts as a multiple of the identity, where eigenvectors have no derivative (1 / (a - a));
#   penalise eigenvalues only, with eigvalsh
import torch
from torch import nn

torch.manual_seed(6)
factor = nn.Parameter(2.0 * torch.eye(4))
head = nn.Linear(4, 1)
opt = torch.optim.Adam([factor, *head.parameters()], lr=1e-2)
points, value = torch.randn(8, 4), torch.randn(8, 1)
for step in range(2):
    metric = factor @ factor.t()
    scale, axes = torch.linalg.eigh(metric)  # <-- origin
    turned = points @ axes * scale.rsqrt()
    loss = (head(turned) - value).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
    if not factor.isfinite().all():
        break
