# case: half-projection-overflow
# kind: inf
# phase: forward
# op: aten::addmm, aten::mm, aten::linear, aten::matmul
# module: widen
# step: 3
# note: unscaled sensor counts times the weights pass 65504 in float16; standardise the counts or project in
#   float32
import torch
from torch import nn


class Spectrometer(nn.Module):
    def __init__(self):
        super().__init__()
        self.widen = nn.Linear(20, 10)
        self.read = nn.Linear(10, 2)
        nn.init.constant_(self.widen.weight, 0.5)

    def forward(self, counts):
        wide = self.widen(counts)  # <-- origin
        return self.read(torch.sigmoid(wide - wide.mean(1, keepdim=True)))


torch.manual_seed(2)
net = Spectrometer().half()
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
for step in range(5):
    counts = torch.rand(6, 20).half() * 90
    if step == 3:
        counts += 8000  # the detector saturates
    label = torch.randint(0, 2, (6,))
    loss = nn.functional.cross_entropy(net(counts).float(), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{step} {loss.item():.4f}")
