# case: masked-softmax-safe-row
# kind: none
# note: rows without any visible key get logits of 0 before the softmax and a weight of 0 after it, the right
#   way round
import torch
from torch import nn


class Glance(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(4, 4)

    def forward(self, x, seen):
        score = (self.key(x) @ x.mT).masked_fill(~seen[:, None, :], -torch.inf)
        empty = ~seen.any(1)[:, None, None]
        score = torch.where(empty, torch.zeros(()), score)
        weight = torch.where(empty, torch.zeros(()), score.softmax(-1))
        return weight @ x


torch.manual_seed(2)
net = nn.ModuleDict({"glance": Glance(), "out": nn.Linear(4, 2)})
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(4):
    seen = torch.rand(5, 6) < 0.7
    seen[3] = step % 2 == 0
    out = net["out"](net["glance"](torch.randn(5, 6, 4), seen)).mean(1)
    loss = nn.functional.cross_entropy(out, torch.tensor([0, 1, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
