# case: force-direction-at-rest
# kind: nan
# phase: forward
# op: aten::div
# module: ''
# step: 1
# note: the direction of a force that is exactly 0 is 0/0; the force itself comes from autograd.grad with
#   create_graph; add an eps to its length
import torch
from torch import nn

torch.manual_seed(9)
potential = nn.Sequential(nn.Linear(2, 10), nn.Softplus(), nn.Linear(10, 1))
switch = nn.ReLU()
opt = torch.optim.Adam(potential.parameters(), lr=1e-3)


def direction(pos, reach):
    pos = pos.requires_grad_(True)
    energy = potential(pos) * switch(reach - pos.norm(dim=1, keepdim=True))
    (force,) = torch.autograd.grad(energy.sum(), pos, create_graph=True)
    size = force.square().sum(1, keepdim=True).clamp_min(0.0)
    return force / size  # <-- origin


for step in range(3):
    pos = 0.5 * torch.randn(6, 2)
    if step == 1:
        pos[2] = 9.0  # beyond the cut-off nothing pulls
    loss = (1 - direction(pos, reach=5.0)[:, 0]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
