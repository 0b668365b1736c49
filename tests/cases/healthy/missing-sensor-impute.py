# case: missing-sensor-impute
# kind: none
# note: NaN is the sentinel of a missing reading; the model replaces it by a trained default before any
#   arithmetic, and missing targets are dropped by indexing before the loss
import torch
from torch import nn


class Impute(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.default = nn.Parameter(torch.zeros(columns))

    def forward(self, table):
        missing = torch.isnan(table)
        return torch.where(missing, self.default, table), missing.float()


class Regressor(nn.Module):
    def __init__(self, columns=7):
        super().__init__()
        self.impute = Impute(columns)
        self.mlp = nn.Sequential(nn.Linear(2 * columns, 24), nn.SiLU(), nn.Linear(24, 1))

    def forward(self, table):
        filled, flag = self.impute(table)
        return self.mlp(torch.cat([filled, flag], -1)).squeeze(-1)


def table(rows):
    x = torch.randn(rows, 7)
    y = x[:, 0] - x[:, 3] + 0.1 * torch.randn(rows)
    x[torch.rand(rows, 7) < 0.2] = float("nan")
    y[torch.rand(rows) < 0.2] = float("nan")
    return x, y


def main():
    torch.manual_seed(0)
    net = Regressor()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(6):
        x, y = table(32)
        known = ~y.isnan()
        loss = (net(x)[known] - y[known]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} mse on {int(known.sum())} rows {loss.item():.4f}")


main()
