# case: accumulate-three-windows
# kind: nan
# phase: forward
# op: aten::log1p
# module: damp
# step: 2
# note: log1p below -1 is NaN; it happens in the 8th of the micro-batches (counted from 1), which belongs to
#   the third update of three micro-batches each; clamp the argument
import torch
from torch import nn


class Damp(nn.Module):
    def forward(self, x):
        return torch.log1p(x)  # <-- origin


class Sensor(nn.Module):
    def __init__(self):
        super().__init__()
        self.damp = Damp()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(self.damp(x))


torch.manual_seed(0)
net = Sensor()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
opt.zero_grad()
updates = 0
for micro in range(12):
    x = torch.rand(4, 3)
    if micro == 7:
        x[0, 1] = -1.5
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)) / 3
    loss.backward()
    if micro % 3 == 2:
        opt.step()
        opt.zero_grad()
        print("update", updates, "loss", loss.item())
        updates += 1
