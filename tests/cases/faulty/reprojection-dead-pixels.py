# case: reprojection-dead-pixels
# kind: inf
# phase: forward
# op: aten::div
# module: warp.camera
# step: 0
# note: a pixel whose depth is 0 is projected: the division by it poisons the gradient of the depth
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
SIZE = 8


class PinholeCamera(nn.Module):
    def __init__(self, focal):
        super().__init__()
        self.focal = focal

    def rays(self):
        axis = torch.linspace(-0.9, 0.9, SIZE)
        v, u = torch.meshgrid(axis, axis, indexing="ij")
        return torch.stack([u, v, torch.ones_like(u)], dim=-1)

    def forward(self, points):
        xy, z = points[..., :2], points[..., 2:]
        image = xy / z  # <-- origin
        return self.focal * image


class Warp(nn.Module):
    def __init__(self):
        super().__init__()
        self.camera = PinholeCamera(1.1)
        self.register_buffer("baseline", torch.tensor([0.21, 0.13, 0.0]))

    def forward(self, depth, other):
        points = self.camera.rays() * depth.permute(0, 2, 3, 1) + self.baseline
        return F.grid_sample(other, self.camera(points), align_corners=True)


class DepthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 6, 3, padding=1)
        self.depth = nn.Conv2d(6, 1, 1)
        self.warp = Warp()

    def forward(self, frame, other):
        depth = torch.relu(self.depth(torch.tanh(self.features(frame))) + 0.4)
        return self.warp(depth, other)


net = DepthNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step in range(3):
    frame, other = torch.randn(2, 2, 3, SIZE, SIZE)
    rebuilt = net(frame * 2.0, other)
    loss = (rebuilt - frame).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("photometric", loss.item())
