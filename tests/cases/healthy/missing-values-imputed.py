# case: missing-values-imputed
# kind: none
# note: the loader delivers NaN for missing entries; the model replaces them by a learned value (where) and
#   appends an indicator before anything is computed. Inputs need no gradient, so nothing comes back.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patients(Dataset):
    def __init__(self, n=64):
        gen = torch.Generator().manual_seed(2)
        self.x = torch.randn(n, 6, generator=gen)
        self.y = (self.x[:, 0] + self.x[:, 1] > 0).float()
        self.x[torch.rand(n, 6, generator=gen) < 0.2] = float("nan")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Impute(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.default = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        missing = torch.isnan(x)
        return torch.cat([torch.where(missing, self.default, x), missing.float()], 1)


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.impute = Impute(6)
        self.net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(self.impute(x)).squeeze(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    risk = Risk()
    opt = torch.optim.Adam(risk.parameters(), lr=5e-3)
    loader = DataLoader(Patients(), batch_size=16, shuffle=True)
    step = 0
    for _epoch in range(2):
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(risk(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            column_means = x.nanmean(0)
            print(
                f"step {step} missing {int(x.isnan().sum())} loss {loss.item():.4f} "
                f"mean of column 0 {column_means[0].item():.3f}"
            )
            step += 1
