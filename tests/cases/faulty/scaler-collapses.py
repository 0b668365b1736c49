# case: scaler-collapses
# kind: inf
# phase: backward
# op: SqrtBackward0, aten::sqrt, aten::div
# module: spread
# step: 0
# note: one constant column has a root of 0 with an infinite slope in every batch, so the scaler skips every
#   update and halves its scale for ever; add eps under the root
import torch
from torch import nn


class Spread(nn.Module):
    def forward(self, x):
        centred = x - x.mean(0)
        return torch.sqrt(centred.square().mean(0))  # <-- origin


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
        self.spread = Spread()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(self.spread(x * self.gain))


torch.manual_seed(6)
net = Model()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for _ in range(12):
    x = torch.randn(8, 4)
    x[:, 2] = 1.0
    loss = (net(x) - 1.0).abs().mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
print("scale", scaler.get_scale(), "gain", net.gain.tolist())
