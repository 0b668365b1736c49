# case: expm-compartments
# kind: inf
# phase: forward
# op: aten::linalg_matrix_exp, aten::matrix_exp
# module: transfer
# step: 1
# note: the exponential of a matrix overflows for one span given in other units
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


class Transfer(nn.Module):
    """State transition of a linear growth model over a time span."""

    def __init__(self, states):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(states, states) * 0.1 - 1.0)

    def forward(self, span):
        rates = F.softplus(self.raw)
        return torch.matrix_exp(rates * span[:, None, None])  # <-- origin


class GrowthModel(nn.Module):
    def __init__(self, states=4):
        super().__init__()
        self.start = nn.Linear(6, states)
        self.transfer = Transfer(states)
        self.read = nn.Linear(states, 1)

    def forward(self, features, span):
        x0 = self.start(features).softmax(-1)
        x1 = torch.einsum("bij,bj->bi", self.transfer(span), x0)
        return self.read(x1).squeeze(-1)


def visits():
    for day in range(4):
        features = torch.randn(10, 6)
        span = torch.rand(10) + 0.2
        if day == 1:
            span[4] *= 600.0  # minutes where hours were meant
        yield features, span, torch.rand(10)


model = GrowthModel()
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for features, span, target in visits():
    opt.zero_grad()
    loss = F.mse_loss(model(features, span), target)
    loss.backward()
    opt.step()
    print("mse", loss.item())
