# case: rotation-angle-identity
# kind: inf
# phase: backward
# op: AcosBackward0, aten::acos, aten::rsqrt, aten::mul
# module: ''
# step: 0
# note: the geodesic angle of a perfect rotation is acos(1) = 0 with an infinite slope; clamp to 1 - 1e-6 or
#   use atan2
import torch
from torch import nn


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        angle = self.fc(x).squeeze(-1)
        return torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).view(-1, 2, 2)


def geodesic(rotation, reference):
    relative = rotation.transpose(1, 2) @ reference
    cosine = relative.diagonal(dim1=1, dim2=2).sum(1) / 2
    return torch.acos(cosine.clamp(-1.0, 1.0))  # <-- origin


torch.manual_seed(2)
pose = Pose()
opt = torch.optim.SGD(pose.parameters(), lr=0.1)
for step in range(2):
    reference = torch.eye(2).expand(5, 2, 2)
    loss = geodesic(pose(torch.randn(5, 4)), reference).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "angle", loss.item())
