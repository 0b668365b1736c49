# case: dataset-relative-change
# kind: inf
# phase: input
# op: aten::div
# module: ''
# step: 2
# note: the relative change from a price of 0 is x / 0, computed by the dataset in the training process; drop
#   such days or use absolute changes
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(3)
        self.price = torch.rand(40, generator=generator) + 1.0
        self.price[23] = 0.0  # a missing quote

    def __len__(self):
        return 32

    def __getitem__(self, day):
        window = self.price[day : day + 6]
        change = window.diff() / window[:-1]  # <-- origin
        return change[:4], change[4:]


torch.manual_seed(3)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step, (past, future) in enumerate(DataLoader(Windows(), batch_size=8)):
    loss = nn.functional.l1_loss(net(past), future)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
