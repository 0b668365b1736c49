# case: adam-eps-zero-unused-row
# kind: nan
# phase: optimizer
# op: aten::addcdiv_, aten::_foreach_addcdiv_, aten::div
# module: table
# step: 0
# note: with eps=1e-50, which float32 rounds to 0, rows of the table without any gradient get 0/0; keep Adam's
#   default eps
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 3)
        self.score = nn.Linear(6, 1)

    def forward(self, user, item):
        return self.score(torch.cat([self.table(user), self.table(item)], dim=1))


torch.manual_seed(4)
net = Recommender()
opt = torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-50)
for step in range(3):
    user, item = torch.randint(0, 4, (6,)), torch.randint(4, 8, (6,))
    loss = nn.functional.softplus(-net(user, item)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # <-- origin
    print(step, loss.item(), "broken rows", int(net.table.weight.isnan().any(1).sum()))
