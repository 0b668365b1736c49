# case: cox-padded-risk-set
# kind: nan
# phase: backward
# op: LogcumsumexpBackward0, aten::logcumsumexp
# module: ''
# step: 1
# note: rows padded in front begin with -inf, which logcumsumexp passes forward and not backward
import torch
import torch.nn as nn

torch.manual_seed(9)


class Hazard(nn.Module):
    def __init__(self, covariates):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(covariates, 12), nn.ELU(), nn.Linear(12, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def cohort(sizes, width, covariates=4):
    """Patients sorted from latest to earliest; short cohorts are padded in front."""
    x = torch.zeros(len(sizes), width, covariates)
    valid = torch.zeros(len(sizes), width, dtype=torch.bool)
    for row, n in enumerate(sizes):
        x[row, width - n :] = torch.randn(n, covariates)
        valid[row, width - n :] = True
    event = (torch.rand(len(sizes), width) > 0.4) & valid
    return x, valid, event


def partial_likelihood(risk, valid, event):
    bias = torch.zeros_like(risk).masked_fill(~valid, float("-inf"))
    pool = torch.logcumsumexp(risk + bias, dim=1)  # <-- origin
    return (pool[event] - risk[event]).mean()


model = Hazard(4)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step, sizes in enumerate([(6, 6, 6), (6, 4, 6), (5, 6, 3), (6, 6, 6)]):
    x, valid, event = cohort(sizes, 6)
    loss = partial_likelihood(model(x), valid, event)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("cohort", step, "nll", round(loss.item(), 4))
