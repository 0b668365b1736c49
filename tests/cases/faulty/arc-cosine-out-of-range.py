# case: arc-cosine-out-of-range
# kind: nan
# phase: forward
# op: aten::acos, aten::arccos
# module: ''
# step: 2
# note: the reference directions of the third batch have length 1.3, so the "cosine" passes 1; normalise both
#   sides and clamp
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
pointer = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 3))
opt = torch.optim.Adam(pointer.parameters(), lr=1e-3)


def angular_loss(direction, reference):
    cosine = (F.normalize(direction, dim=1) * reference).sum(1)
    return cosine.acos().mean()  # <-- origin


for step in range(4):
    x = torch.randn(9, 4)
    with torch.no_grad():
        reference = F.normalize(pointer(x) + 0.3 * torch.randn(9, 3), dim=1)
    if step == 2:
        reference = reference * 1.3
    loss = angular_loss(pointer(x), reference)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.4f}")
