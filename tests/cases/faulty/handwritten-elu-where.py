# case: handwritten-elu-where
# kind: inf
# phase: forward
# op: aten::exp
# module: body.act1
# step: 2
# note: exp of an activation above 88 is inf in the branch that where drops; the loss stays finite, but exp
#   keeps its result and its gradient is 0 * inf = NaN; use expm1 of x.clamp(max=0) or F.elu
from collections import OrderedDict

import torch
from torch import nn


class ELU(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        curve = torch.exp(x)  # <-- origin
        return torch.where(x > 0, x, self.alpha * (curve - 1))


class Forecaster(nn.Module):
    def __init__(self, lags=12):
        super().__init__()
        self.body = nn.Sequential(
            OrderedDict(
                lin1=nn.Linear(lags, 32),
                act1=ELU(),
                lin2=nn.Linear(32, 16),
                act2=nn.ELU(),
                read=nn.Linear(16, 1),
            )
        )

    def forward(self, window):
        return self.body(window).squeeze(-1)


def series(store):
    t = torch.arange(60.0)
    sales = 3 + torch.sin(t / 4) + 0.2 * torch.randn(60)
    return sales * (1.0 if store != 2 else 150.0)  # one store reports in cents


torch.manual_seed(0)
net = Forecaster()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for store in range(4):
    s = series(store)
    windows = s.unfold(0, 13, 1)
    scale = windows[:, -1].abs().mean()
    loss = nn.functional.smooth_l1_loss(net(windows[:, :12]) / scale, windows[:, 12] / scale)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("store", store, "loss", f"{loss.item():.4f}")
