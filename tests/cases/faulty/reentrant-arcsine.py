# case: reentrant-arcsine
# kind: inf
# phase: backward
# op: AsinBackward0, aten::asin, aten::rsqrt, aten::mul
# module: joint
# step: 2
# note: the slope of arcsine is infinite where the clamp stops at exactly 1; the node is made while reentrant
#   checkpointing repeats the line inside backward; clamp to 1 - 1e-6
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Joint(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        sine = self.fc(x).clamp(-1.0, 1.0)
        return torch.asin(sine)  # <-- origin


class Arm(nn.Module):
    def __init__(self):
        super().__init__()
        self.sense = nn.Linear(4, 3)
        self.joint = Joint()
        self.tip = nn.Linear(2, 2)

    def forward(self, x):
        return self.tip(checkpoint(self.joint, torch.tanh(self.sense(x)), use_reentrant=True))


torch.manual_seed(7)
arm = Arm()
opt = torch.optim.SGD(arm.parameters(), lr=1e-3)
for move in range(4):
    x = 0.1 * torch.randn(6, 4)
    if move == 2:
        with torch.no_grad():  # the calibration writes the end stop into the bias
            arm.joint.fc.weight.zero_()
            arm.joint.fc.bias.fill_(1.0)
    loss = (arm(x) - x[:, :2]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(move, round(loss.item(), 5))
