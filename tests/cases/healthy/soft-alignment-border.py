# case: soft-alignment-border
# kind: none
# note: the border of the table is infinitely expensive on purpose
import torch
import torch.nn as nn

torch.manual_seed(2)


class SoftDTW(nn.Module):
    """Soft dynamic time warping; the border of the table is infinitely expensive."""

    def __init__(self, gamma=0.5, band=4):
        super().__init__()
        self.gamma, self.band = gamma, band

    def softmin(self, *options):
        stacked = torch.stack(options)
        return -self.gamma * torch.logsumexp(-stacked / self.gamma, dim=0)

    def forward(self, a, b):
        cost = (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(-1)
        batch, n, m = cost.shape
        wall = cost.new_full((batch,), float("inf"))
        row = [cost.new_zeros(batch)] + [wall] * m
        for i in range(n):
            fresh = [wall]
            for j in range(m):
                if abs(i - j) > self.band:
                    fresh.append(wall)
                else:
                    fresh.append(cost[:, i, j] + self.softmin(row[j], row[j + 1], fresh[j]))
            row = fresh
        return row[-1]


class Forecaster(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


model, criterion = Forecaster(), SoftDTW()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
best = float("inf")
for step in range(5):
    phase = torch.rand(6, 1, 1) * 6.0
    grid = torch.linspace(0, 6, 9).view(1, 9, 1) + phase
    loss = criterion(model(torch.sin(grid)), torch.cos(grid)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = min(best, loss.item())
    print("step", step, "alignment", round(loss.item(), 4), "best", round(best, 4))
