# case: euler-pitch-asin
# kind: inf
# phase: backward
# op: AsinBackward0, aten::asin
# module: ''
# step: 3
# note: a pose in gimbal lock has sin(pitch) = 1 exactly, where asin has an infinite slope; the clamp to
#   [-1, 1] before it does not help (at step 2 it does: there the argument is past 1 and the clamp drops
#   the gradient); clamp to 1 - 1e-6 or compare rotation matrices
import torch
from torch import nn


def quat_to_euler(q):
    w, x, y, z = q.unbind(-1)
    roll = torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    sin_pitch = (2 * (w * y - z * x)).clamp(-1.0, 1.0)
    pitch = torch.asin(sin_pitch)  # <-- origin
    yaw = torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return torch.stack([roll, pitch, yaw], -1)


class PoseNet(nn.Module):
    """Predicts a correction of the measured quaternion."""

    def __init__(self):
        super().__init__()
        self.fix = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4, bias=False))

    def forward(self, q, quality):
        return q + quality[:, None] * self.fix(q)


torch.manual_seed(6)
net = PoseNet()
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in range(5):
    q = nn.functional.normalize(torch.randn(8, 4), dim=-1)
    quality = torch.rand(8)
    if step == 3:  # calibration frame: the arm points straight up, the reading is trusted
        q[5] = torch.tensor([0.5, -0.5, 0.5, 0.5])
        quality[5] = 0.0
    truth = quat_to_euler(q) + 0.05 * torch.randn(8, 3)
    loss = (quat_to_euler(net(q, quality)) - truth).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "euler mse", round(loss.item(), 5))
