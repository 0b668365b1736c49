# case: softmax-row-overwritten
# run: python softmax-row-overwritten.py (exit status 1)
# kind: error
# phase: forward
# op: aten::index_put_, aten::_index_put_impl_, aten::masked_fill_, aten::fill_
# module: mixer
# step: 0
# note: softmax's backward needs its own result, which the next line overwrites where the mask says so; use
#   masked_fill (not in place) or mask before the softmax
import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def forward(self, x, padded):
        weight = torch.softmax(self.query(x) @ x.mT, dim=-1)
        weight[padded] = 0.0  # <-- origin
        return weight @ x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixer = Mixer()
        self.fc = nn.Linear(4, 2)

    def forward(self, x, padded):
        return self.fc(self.mixer(x, padded)).mean(1)


torch.manual_seed(0)
net = Model()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    padded = torch.zeros(3, 5, dtype=torch.bool)
    padded[1, 3:] = True
    loss = nn.functional.cross_entropy(net(torch.randn(3, 5, 4), padded), torch.tensor([0, 1, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
