# case: tonemap-gamma-vignette
# kind: inf
# phase: backward
# op: PowBackward0, aten::pow
# module: tonemap
# step: 2
# note: a lens mask sets the corner pixels to exactly 0, where x ** (1/2.2) is fine but its slope is
#   infinite; the product with the mask then makes 0 * inf = NaN; add a small floor before the power
import torch
import torch.nn as nn
import torch.nn.functional as F


class ToneMap(nn.Module):
    def __init__(self, gamma=2.2):
        super().__init__()
        self.gamma = gamma

    def forward(self, linear):
        return linear ** (1 / self.gamma)  # <-- origin


class Enhancer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 3, 3, padding=1)
        self.tonemap = ToneMap()

    def forward(self, raw, lens):
        exposure = torch.sigmoid(self.conv2(F.leaky_relu(self.conv1(raw), 0.1)))
        return self.tonemap(exposure * lens)


def lens_mask(size, corners):
    r = torch.linspace(-1, 1, size)
    dist = (r[:, None] ** 2 + r[None] ** 2).sqrt()
    return (dist < 1.2).float() if corners else (1.2 - 0.5 * dist)


if __name__ == "__main__":
    torch.manual_seed(21)
    net = Enhancer()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for i, fisheye in enumerate([False, False, True, False]):
        raw = torch.rand(2, 3, 10, 10)
        target = (0.1 + 0.9 * raw).pow(1 / 2.2)
        out = net(raw, lens_mask(10, fisheye))
        loss = F.l1_loss(out, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        print(f"image {i}: L1 {loss.item():.4f}")
