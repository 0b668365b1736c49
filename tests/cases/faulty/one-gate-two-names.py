# case: one-gate-two-names
# kind: inf
# phase: forward
# op: aten::logit
# module: student.gate, teacher.gate
# step: 1
# note: a saturated sigmoid is exactly 1 in float32 and its logit is inf; pass eps to logit or keep the
#   logits. One gate serves under two names
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.steep = nn.Linear(4, 4)

    def forward(self, x):
        prob = torch.sigmoid(self.steep(x))
        return torch.logit(prob)  # <-- origin


class Branch(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.gate = gate
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.gate(x))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        gate = Gate()
        self.student = Branch(gate)
        self.teacher = Branch(gate)

    def forward(self, x):
        return self.student(x) - self.teacher(0.1 * x)


torch.manual_seed(1)
pair = Pair()
opt = torch.optim.SGD(pair.parameters(), lr=0.01)
for step in range(3):
    x = torch.randn(6, 4) * (1.0 if step != 1 else 500.0)
    loss = pair(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
