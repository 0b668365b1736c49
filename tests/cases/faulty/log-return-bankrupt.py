# case: log-return-bankrupt
# kind: nan
# phase: forward
# op: aten::log
# module: broker.ledger
# step: 2
# note: a leveraged loss below -100 % makes the wealth negative, whose logarithm is NaN; clamp the wealth to a
#   small positive number
import torch
from torch import nn


class Ledger(nn.Module):
    def forward(self, weight, market):
        wealth = 1.0 + (weight * market).sum(-1)
        return torch.log(wealth)  # <-- origin


class Broker(nn.Module):
    def __init__(self):
        super().__init__()
        self.lever = nn.Linear(3, 3)
        self.ledger = Ledger()

    def forward(self, market, signal):
        return self.ledger(1.5 + torch.tanh(self.lever(signal)), market)


class Fund(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Linear(5, 3)
        self.broker = Broker()

    def forward(self, news, market):
        return self.broker(market, self.feature(news))


torch.manual_seed(0)
fund = Fund()
opt = torch.optim.Adam(fund.parameters(), lr=1e-3)
for day in range(4):
    market = 0.02 * torch.randn(10, 3)
    if day == 2:
        market[7] = -0.9  # the crash
    loss = -fund(torch.randn(10, 5), market).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"day {day} log return {-loss.item():.5f}")
