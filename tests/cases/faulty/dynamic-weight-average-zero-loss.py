# case: dynamic-weight-average-zero-loss
# kind: nan
# phase: forward
# op: aten.div
# module: ''
# step: 4
# note: task weights are softmax(L(t-1) / L(t-2)); the hinge task had a loss of exactly 0 twice in a row
#   (no negatives in the batches), 0/0 = NaN and the softmax spreads it to all tasks. Epsilon in the ratio.
from collections import deque

import torch
from torch import nn


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 16), nn.ELU())
        self.depth = nn.Linear(16, 1)
        self.rank = nn.Linear(16, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.depth(h).squeeze(1), self.rank(h).squeeze(1)


class Balancer:
    def __init__(self, tasks, heat=2.0):
        self.tasks, self.heat = tasks, heat
        self.past = deque(maxlen=2)

    def __call__(self, losses):
        if len(self.past) < 2:
            weights = torch.ones(self.tasks)
        else:
            ratio = self.past[1] / self.past[0]  # <-- origin
            weights = self.tasks * torch.softmax(ratio / self.heat, 0)
        self.past.append(losses.detach())
        return (weights * losses).sum(), weights


def ranking_loss(score, better, worse):
    margin = 0.5 - (score[better].unsqueeze(1) - score[worse].unsqueeze(0))
    return torch.relu(margin).sum() / 100.0


def main():
    torch.manual_seed(12)
    net, balancer = Shared(), Balancer(2)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for step in range(7):
        x = torch.randn(18, 6)
        good = x[:, 1] > 0
        if step in (2, 3):
            good[:] = True  # a shard with only good samples: no pairs, ranking loss is exactly zero
        depth, score = net(x)
        losses = torch.stack([(depth - x[:, 0]).abs().mean(), ranking_loss(score, good, ~good)])
        loss, weights = balancer(losses)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} losses {losses.tolist()} weights {[round(w, 3) for w in weights.tolist()]}")


if __name__ == "__main__":
    main()
