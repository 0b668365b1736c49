# case: early-stop-nan-validation
# kind: nan
# phase: forward
# op: aten._softmax, aten.softmax
# module: pool
# step: 2, 3
# note: only in eval() the pooling drops instances below a threshold; in one validation bag none is left,
#   the softmax over a row of -inf is NaN. First evaluated after epoch 0 (3 training steps). Training is
#   healthy, NaN < best is False and no model is ever kept. The -inf itself is intended.
from dataclasses import dataclass, field

import torch
from torch import nn


class ThresholdPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)
        self.floor = 0.5

    def forward(self, h, energy):
        a = self.score(h).squeeze(-1)
        if not self.training:  # speed-up for deployment
            a = a.masked_fill(energy < self.floor, float("-inf"))
        w = a.softmax(-1)  # <-- origin
        return (w.unsqueeze(-1) * h).sum(1)


class BagNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inst = nn.Linear(4, 8)
        self.pool = ThresholdPool(8)
        self.head = nn.Linear(8, 2)

    def forward(self, bags):
        energy = bags.square().mean(-1)
        return self.head(self.pool(torch.relu(self.inst(bags)), energy))


@dataclass
class Stopper:
    patience: int = 2
    best: float = float("inf")
    bad: int = 0
    kept: dict = field(default_factory=dict)

    def update(self, value, net):
        if value < self.best:
            self.best, self.bad, self.kept = value, 0, {k: v.clone() for k, v in net.state_dict().items()}
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    torch.manual_seed(0)
    net, stop = BagNet(), Stopper()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    val_x, val_y = torch.randn(10, 5, 4), torch.randint(0, 2, (10,))
    val_x[7] *= 0.1  # an almost empty slide
    for epoch in range(4):
        net.train()
        for _ in range(3):
            x = torch.randn(12, 5, 4)
            loss = nn.functional.cross_entropy(net(x), (x.mean((1, 2)) > 0).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            val = nn.functional.cross_entropy(net(val_x), val_y).item()
        print(f"epoch {epoch} train {loss.item():.4f} validation {val:.4f}")
        if stop.update(val, net):
            print("early stop; kept", "nothing" if not stop.kept else f"{stop.best:.4f}")
            break


if __name__ == "__main__":
    main()
