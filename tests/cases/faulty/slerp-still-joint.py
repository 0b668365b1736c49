# case: slerp-still-joint
# kind: nan
# phase: forward
# op: aten::div
# module: blend
# step: 1
# note: the angle between equal poses is 0, and so is its sine, by which is divided
import torch
import torch.nn as nn

torch.manual_seed(2)


def unit(q):
    return q / q.norm(dim=-1, keepdim=True)


class Slerp(nn.Module):
    def forward(self, q0, q1, t):
        omega = torch.acos((q0 * q1).sum(-1, keepdim=True).clamp(-1.0, 1.0))
        base = torch.sin(omega)
        w0 = torch.sin((1.0 - t) * omega) / base  # <-- origin
        w1 = torch.sin(t * omega) / base
        return w0 * q0 + w1 * q1


class MotionInbetween(nn.Module):
    """Predicts where between two key poses a frame lies."""

    def __init__(self):
        super().__init__()
        self.timing = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        self.blend = Slerp()

    def forward(self, q0, q1, phase):
        t = self.timing(torch.cat([q0, q1, phase], dim=-1))
        return self.blend(q0, q1, t)


def clip(step, joints=10):
    q0 = unit(torch.randn(joints, 4))
    q1 = unit(q0 + 0.5 * torch.randn(joints, 4))
    if step == 1:
        q0[6] = q1[6] = torch.tensor([0.0, 1.0, 0.0, 0.0])  # joint at rest
    phase = torch.rand(joints, 1)
    return q0, q1, phase, unit(torch.lerp(q0, q1, phase))


net = MotionInbetween()
opt = torch.optim.NAdam(net.parameters(), lr=2e-3)
for step in range(4):
    q0, q1, phase, truth = clip(step)
    loss = (1.0 - (net(q0, q1, phase) * truth).sum(-1).abs()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("frame loss", loss.item())
