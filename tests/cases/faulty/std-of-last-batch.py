# case: std-of-last-batch
# kind: nan
# phase: forward
# op: aten::std
# module: scale
# step: 4
# note: the last batch of 17 samples has one row and the unbiased std of one value is NaN; drop_last=True or
#   correction=0
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Standardise(nn.Module):
    def forward(self, x):
        spread = torch.std(x, dim=0)  # <-- origin
        return (x - x.mean(0)) / (spread + 1e-5)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Standardise()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(self.scale(x))


torch.manual_seed(0)
data = TensorDataset(torch.randn(17, 3), torch.randn(17, 1))
net = Regressor()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i, (x, y) in enumerate(DataLoader(data, batch_size=4)):
    loss = nn.functional.smooth_l1_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{i}: {len(x)} rows, loss {loss.item():.4f}")
