# case: polyak-step-perfect-batch
# kind: nan
# phase: optimizer
# op: aten::div
# module: ''
# step: 3
# note: Polyak's step length loss / |gradient|^2 is 0/0 on a batch that is fitted perfectly; add an eps or
#   skip the batch
import torch
from torch import nn

torch.manual_seed(2)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=torch.tensor(0.0))
for step in range(5):
    x = torch.randn(8, 4)
    target = x.sum(1, keepdim=True)
    if step == 3:
        target = net(x).detach()  # a batch of pseudo-labels that the model made itself
    loss = (net(x) - target).square().mean()
    opt.zero_grad()
    loss.backward()
    with torch.no_grad():
        slope = sum(p.grad.square().sum() for p in net.parameters())
        opt.param_groups[0]["lr"].copy_(0.5 * loss / slope)  # <-- origin
    opt.step()
    print(step, loss.item(), opt.param_groups[0]["lr"].item())
