# case: scatter-amax-empty-voxels
# kind: none
# note: the maximum starts from -inf and empty voxels keep it, but they are set to 0 by masked_fill before
#   anything is computed from them, and the gradient of masked_fill is an exact 0 there
import torch
import torch.nn as nn
import torch.nn.functional as F


class VoxelMax(nn.Module):
    def __init__(self, voxels, channels):
        super().__init__()
        self.voxels = voxels
        self.point = nn.Sequential(nn.Linear(3, channels), nn.ReLU(), nn.Linear(channels, channels))

    def forward(self, xyz):
        cell = ((xyz.clamp(-2, 1.999) + 2) * self.voxels / 4).long()
        index = (cell[:, 0] * self.voxels + cell[:, 1]) * self.voxels + cell[:, 2]
        feat = self.point(xyz)
        grid = torch.full((self.voxels**3, feat.shape[1]), float("-inf"))
        grid = grid.scatter_reduce(0, index[:, None].expand_as(feat), feat, "amax")
        return grid.masked_fill(grid.isneginf(), 0.0).t().view(1, -1, *[self.voxels] * 3)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.vox = VoxelMax(4, 8)
        self.conv = nn.Conv3d(8, 6, 3, padding=1)
        self.out = nn.Linear(6, 3)

    def forward(self, xyz):
        return self.out(F.relu(self.conv(self.vox(xyz))).amax((2, 3, 4)))


torch.manual_seed(0)
net = PointNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(5):
    kind = step % 3
    cloud = torch.randn(40, 3) * torch.tensor([1.0, [1.0, 0.2, 1.5][kind], 0.3])
    loss = F.cross_entropy(net(cloud), torch.tensor([kind]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("cloud", step, "loss", loss.item())
