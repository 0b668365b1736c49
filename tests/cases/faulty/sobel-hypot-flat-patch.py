# case: sobel-hypot-flat-patch
# kind: nan
# phase: backward
# op: HypotBackward0, aten::hypot, aten::div
# module: edges
# step: 2
# note: a flat patch has gx = gy = 0; hypot(0, 0) = 0 is right but its gradient is gx / 0 = NaN; use
#   sqrt(gx^2 + gy^2 + eps)
import torch
import torch.nn as nn
import torch.nn.functional as F


class Edges(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]]) / 8
        self.register_buffer("kernel", torch.stack([k, k.t()])[:, None])

    def forward(self, img):
        g = F.conv2d(img, self.kernel)
        return torch.hypot(g[:, 0], g[:, 1])  # <-- origin


class EdgeAwareSR(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Conv2d(1, 4, 3, padding=1)
        self.edges = Edges()

    def forward(self, low):
        base = F.interpolate(low, scale_factor=2, mode="nearest")
        detail = F.pixel_shuffle(self.up(low), 2) * (low.amax() - low.amin())
        high = base + 0.1 * detail
        return high, self.edges(high)


torch.manual_seed(31)
net = EdgeAwareSR()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
reference = Edges()
for step in range(4):
    truth = torch.rand(2, 1, 16, 16)
    if step == 2:
        truth = torch.full_like(truth, 0.5)  # a title card
    low = F.avg_pool2d(truth, 2)
    high, edge = net(low)
    loss = F.l1_loss(high, truth) + 0.5 * (edge - reference(truth)[:]).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, "sr loss", round(loss.item(), 5))
