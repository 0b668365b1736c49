# case: pair-soft-margin
# kind: inf
# phase: forward
# op: aten::soft_margin_loss
# module: ''
# step: 1
# note: soft_margin_loss takes exp of a large margin and overflows
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Pairs(Dataset):
    def __init__(self):
        self.left = torch.randn(36, 5)
        self.right = torch.randn(36, 5)
        self.same = torch.where(torch.rand(36) > 0.5, 1.0, -1.0)
        self.left[17] *= 40.0  # document whose counts were never scaled
        self.right[17] = self.left[17]
        self.same[17] = -1.0

    def __len__(self):
        return 36

    def __getitem__(self, i):
        return self.left[i], self.right[i], self.same[i]


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(5, 6)
        self.right = nn.Linear(5, 6)
        self.right.load_state_dict(self.left.state_dict())

    def forward(self, a, b):
        return (self.left(a) * self.right(b)).sum(-1)


model = TwoTower()
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
for step, (a, b, same) in enumerate(DataLoader(Pairs(), batch_size=12)):
    margin = model(a, b)
    loss = F.soft_margin_loss(margin, same)  # <-- origin
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} soft margin {loss.item():.4f}")
