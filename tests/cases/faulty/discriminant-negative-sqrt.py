# case: discriminant-negative-sqrt
# kind: nan
# phase: forward
# op: aten::sqrt
# module: Intersect
# step: 1
# note: a ray that misses the sphere has a negative discriminant; clamp it and mask the ray before the square
#   root
import torch
from torch import nn


class Intersect(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Parameter(torch.tensor([0.0, 0.0, 4.0]))
        self.radius = nn.Parameter(torch.tensor(1.5))

    def forward(self, rays):
        b = rays @ self.center
        disc = b * b - self.center.dot(self.center) + self.radius**2
        return b - torch.sqrt(disc)  # <-- origin


scene = Intersect()
opt = torch.optim.SGD(scene.parameters(), lr=0.01)
for frame in range(3):
    angle = torch.linspace(-0.3, 0.3, 9) * (1 + 3 * (frame == 1))
    rays = torch.stack([torch.sin(angle), torch.zeros(9), torch.cos(angle)], dim=1)
    depth = scene(rays)
    loss = (depth - 2.4).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(frame, loss.item())
