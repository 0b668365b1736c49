# case: collate-standardise-constant
# kind: nan
# phase: input
# op: aten.div
# module: ''
# step: 3
# note: the collate function standardises every column over the batch; in batch 3 all rows come from one
#   site, the site column is constant and 0/0. It runs in the training process (num_workers=0), while the
#   loader fetches. Add an epsilon.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Visits(Dataset):
    """Rows sorted by hospital; the loader does not shuffle."""

    def __init__(self, n=60):
        gen = torch.Generator().manual_seed(1)
        self.x = torch.randn(n, 5, generator=gen)
        self.x[:, 4] = torch.arange(n) % 7
        self.x[34:50, 4] = 3.0
        self.y = (self.x[:, 0] - self.x[:, 1] > 0).long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


def standardising_collate(rows):
    x = torch.stack([r["x"] for r in rows])
    y = torch.stack([r["y"] for r in rows])
    centred = x - x.mean(0)
    scale = centred.square().mean(0).sqrt()
    return {"x": centred / scale, "y": y}  # <-- origin


class Trainer:
    def __init__(self, net, loader, lr):
        self.net, self.loader = net, loader
        self.opt = torch.optim.Adagrad(net.parameters(), lr=lr)
        self.step = 0

    def fit(self, epochs):
        for epoch in range(epochs):
            seen = []
            for batch in self.loader:  # <-- seen
                seen.append(self.one(batch))
            print(f"epoch {epoch} mean loss {sum(seen) / len(seen):.4f}")

    def one(self, batch):
        loss = nn.functional.cross_entropy(self.net(batch["x"]), batch["y"])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        print(f"  step {self.step} loss {loss.item():.4f}")
        self.step += 1
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 12), nn.Sigmoid(), nn.Linear(12, 2))
    Trainer(model, DataLoader(Visits(), batch_size=12, collate_fn=standardising_collate), 0.05).fit(1)
