# case: accumulate-with-workers
# kind: none
# note: batches come from two worker processes, some targets are missing (NaN) and removed before use, and
#   four micro-batches make one update
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patients(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        x = torch.sin(torch.arange(5) * 0.3 * (i + 1))
        y = x.sum() if i % 5 else torch.tensor(float("nan"))  # not measured
        return x, y


def main():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 8), nn.SiLU(), nn.Linear(8, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    loader = DataLoader(Patients(), batch_size=4, num_workers=2)
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        known = ~y.isnan()
        gap = net(x[known]).squeeze(1) - y[known]
        loss = gap.square().sum() / known.sum().clamp(min=1) / 4
        loss.backward()
        if i % 4 == 3:
            opt.step()
            opt.zero_grad()
            print("update", i // 4, loss.item())


if __name__ == "__main__":
    main()
