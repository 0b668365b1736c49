# case: moe-router-annealed-to-zero
# kind: inf
# phase: forward
# op: aten.div
# module: moe.router
# step: 5
# note: the temperature of the router is annealed linearly and reaches exactly 0 at step 5: logits / 0 =
#   inf, softmax of inf is NaN. Stop the schedule at a small positive value.
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.score = nn.Linear(dim, experts)
        self.temperature = 1.0

    def forward(self, x):
        logits = self.score(x)
        sharp = logits / self.temperature  # <-- origin
        return sharp.softmax(-1)


class Mixture(nn.Module):
    def __init__(self, dim, experts=4):
        super().__init__()
        self.router = Router(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))

    def forward(self, x):
        gate = self.router(x)
        stacked = torch.stack([e(x) for e in self.experts], 1)
        self.load = gate.mean(0)
        return (gate.unsqueeze(-1) * stacked).sum(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(5, 8)
        self.moe = Mixture(8)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        return self.out(h + self.moe(h))


def anneal(net, step, total):
    net.moe.router.temperature = max(0.0, 1.0 - step / total)


def main():
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.NAdam(net.parameters(), lr=2e-3)
    for step in range(7):
        anneal(net, step, total=5)
        x = torch.randn(24, 5)
        logits = net(x)
        balance = 4 * net.moe.load.square().sum()
        loss = nn.functional.cross_entropy(logits, (x[:, 0] > 0).long()) + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} temperature {net.moe.router.temperature:.1f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
