# case: position-table-never-filled
# kind: nan
# phase: input, parameter
# op: aten::empty
# module: position, ''
# step: 0
# note: only the even columns of the position table are written, the odd ones stay uninitialised
#   (deterministic mode fills them with NaN); write both halves
import torch
from torch import nn

torch.use_deterministic_algorithms(True)


class Position(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        table = torch.empty(length, width)  # <-- origin
        angle = torch.arange(length)[:, None] / 100 ** (torch.arange(0, width, 2) / width)
        table[:, 0::2] = angle.sin()
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.position = Position(12, 6)
        self.out = nn.Linear(6, 3)

    def forward(self, ids):
        return self.out(self.position(self.embed(ids)))


torch.manual_seed(7)
net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(2):
    out = net(torch.randint(0, 20, (4, 9)))
    loss = nn.functional.cross_entropy(out.flatten(0, 1), torch.randint(0, 3, (36,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
