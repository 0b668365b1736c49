# case: procrustes-equal-singular-values
# kind: nan, inf
# phase: backward
# op: LinalgSvdBackward0, aten::_linalg_svd, aten::linalg_svd
# module: align
# step: 0
# note: the map starts as the identity, all singular values are equal, and the gradients of U and V divide by
#   their differences; start from a perturbed matrix
import torch
from torch import nn


class Align(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Parameter(torch.eye(3))

    def forward(self, x):
        u, s, vt = torch.linalg.svd(self.map)  # <-- origin
        return x @ u @ torch.diag(s.sqrt()) + x @ vt.mT


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.align = Align()
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return self.align(x) + self.bias


torch.manual_seed(5)
net = Matcher()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
cloud = torch.randn(10, 3)
for epoch in range(2):
    loss = (net(cloud) - cloud.roll(1, 1)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("epoch", epoch, loss.item())
    if not net.bias.isfinite().all() or not net.align.map.isfinite().all():
        break
