# case: never-seen-item-decay
# kind: none
# note: a sensor that has not reported has an infinite gap on purpose: its weight is exp(-inf), which is 0
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)


class Freshness(nn.Module):
    """Weight of a sensor reading; a sensor that never reported has an infinite gap."""

    def __init__(self, horizon=3.0):
        super().__init__()
        self.register_buffer("horizon", torch.tensor(horizon))

    def forward(self, span, reports):
        gap = span / reports
        return torch.exp(-gap / self.horizon)


class DecayedGRU(nn.Module):
    def __init__(self, sensors=4, hidden=12):
        super().__init__()
        self.freshness = Freshness()
        self.fill = nn.Parameter(torch.zeros(sensors))
        self.rnn = nn.GRUCell(2 * sensors, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, value, span, reports):
        h = value.new_zeros(value.size(0), self.rnn.hidden_size)
        for t in range(value.size(1)):
            w = self.freshness(span[:, t], reports[:, t])
            x = w * value[:, t] + (1.0 - w) * self.fill
            h = self.rnn(torch.cat([x, w], dim=-1), h)
        return self.out(h).squeeze(-1)


span = torch.arange(1.0, 7.0).view(1, 6, 1).expand(32, 6, 4)
reports = (torch.rand(32, 6, 4) > 0.6).float().cumsum(1)
value = torch.randn(32, 6, 4) * (reports > 0)
target = value[:, -1].mean(-1)
loader = DataLoader(TensorDataset(value, span, reports, target), batch_size=8)

model = DecayedGRU()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for v, s, r, y in loader:
        loss = nn.functional.mse_loss(model(v, s, r), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        opt.step()
    print("epoch", epoch, "mse", round(loss.item(), 5))
