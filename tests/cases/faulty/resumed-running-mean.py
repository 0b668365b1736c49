# case: resumed-running-mean
# kind: nan
# phase: input, parameter
# op: aten::copy_, torch.load, aten::set_
# module: norm
# step: 0
# note: the checkpoint holds a NaN running mean; training in train mode never reads it, evaluation does. Check
#   every tensor of a state dict when loading
import tempfile
from pathlib import Path

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)
        self.norm = nn.BatchNorm1d(5)
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.fc(x))))


def old_run(path):
    net = Net()
    state = net.state_dict()
    state["norm.running_mean"].numpy()[3] = float("nan")
    torch.save(state, path)


torch.manual_seed(5)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "epoch-9.pt"
    old_run(path)
    net = Net()
    state = torch.load(path)  # <-- seen
    net.load_state_dict(state)  # <-- origin
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, loss.item())
net.eval()
with torch.no_grad():
    print("evaluation", net(torch.randn(2, 4)).tolist())
