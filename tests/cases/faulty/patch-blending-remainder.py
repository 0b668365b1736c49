# case: patch-blending-remainder
# kind: nan
# phase: forward
# op: aten::div
# module: blend
# step: 1
# note: pixels that no patch covers are divided by 0 hits
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)


class OverlapBlend(nn.Module):
    """Average overlapping patches back into an image."""

    def __init__(self, size, stride):
        super().__init__()
        self.size, self.stride = size, stride

    def forward(self, patches, shape):
        total = F.fold(patches, shape, self.size, stride=self.stride)
        hits = F.fold(torch.ones_like(patches), shape, self.size, stride=self.stride)
        return total / hits  # <-- origin


class PatchDenoiser(nn.Module):
    def __init__(self, size=4, stride=3):
        super().__init__()
        self.size, self.stride = size, stride
        self.mlp = nn.Sequential(nn.Linear(size * size, 32), nn.GELU(), nn.Linear(32, size * size))
        self.blend = OverlapBlend(size, stride)

    def forward(self, image):
        cols = F.unfold(image, self.size, stride=self.stride)
        cols = cols + self.mlp(cols.transpose(1, 2)).transpose(1, 2)
        return self.blend(cols, image.shape[-2:])


net = PatchDenoiser()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _step, side in enumerate((10, 11, 13)):  # one photograph does not divide evenly
    clean = torch.rand(4, 1, side, side)
    noisy = clean + 0.1 * torch.randn_like(clean)
    loss = F.mse_loss(net(noisy), clean)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"side {side} mse {loss.item():.5f}")
