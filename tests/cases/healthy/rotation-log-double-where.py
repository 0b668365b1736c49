# case: rotation-log-double-where
# kind: none
# note: sinc-like 0 / 0 is computed without grad only to count small angles; the trained path takes the
#   double-where form and stays finite for the identity rotation
import torch
from torch import nn


def so3_log(q):
    """Axis-angle of a unit quaternion (w, x, y, z), safe at the identity."""
    w, v = q[:, :1], q[:, 1:]
    n2 = v.square().sum(-1, keepdim=True)
    small = n2 < 1e-12
    n = torch.where(small, torch.ones_like(n2), n2).sqrt()
    factor = torch.where(small, 2.0 / w.abs().clamp(min=0.5), 2 * torch.atan2(n, w) / n)
    return factor * v


@torch.no_grad()
def naive_ratio(q):
    n = q[:, 1:].norm(dim=-1)
    return 2 * torch.atan2(n, q[:, 0]) / n  # NaN for the identity, used for a count only


class DeltaPose(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3, bias=False))

    def forward(self, motion):
        v = 0.5 * self.net(motion)
        w = torch.ones_like(v[:, :1])
        return nn.functional.normalize(torch.cat([w, v], -1), dim=-1)


def main():
    torch.manual_seed(0)
    net = DeltaPose()
    with torch.no_grad():
        net.net[0].bias.zero_()
    opt = torch.optim.Adam([net.net[0].weight, net.net[2].weight], lr=3e-3)
    for step in range(5):
        motion, want = torch.randn(10, 6), 0.3 * torch.randn(10, 3)
        motion[step % 10] = 0.0  # the camera stood still
        q = net(motion)
        loss = (so3_log(q) - want).square().sum(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        undefined = naive_ratio(q.detach()).isnan().sum().item()
        print(f"step {step} loss {loss.item():.4f} undefined naive ratios {undefined}")


main()
