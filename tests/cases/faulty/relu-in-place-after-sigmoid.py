# case: relu-in-place-after-sigmoid
# run: python relu-in-place-after-sigmoid.py (exit status 1)
# kind: error
# phase: forward
# op: aten::relu_, aten::clamp_min_
# module: gate
# step: 0
# note: an in-place ReLU writes into the sigmoid's saved result, even where it changes no value; drop
#   inplace=True
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        opened = torch.sigmoid(self.fc(x))
        return x * nn.functional.relu(opened, inplace=True)  # <-- origin


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        return self.out(self.gate(x))


torch.manual_seed(5)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 3)
    loss = (net(x) - x.amax(1, keepdim=True)).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
