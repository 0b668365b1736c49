# case: additive-mask-zero-times-inf
# kind: nan
# phase: forward
# op: aten::mul
# module: select
# step: 1
# note: (1 - keep) * -inf is 0 * -inf = NaN wherever keep is 1; the first batch is not masked at all and takes
#   another path; use masked_fill
import torch
from torch import nn


class Select(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(5, 1)

    def forward(self, x, keep=None):
        score = self.score(x).squeeze(-1)
        if keep is not None:
            score = score + (1 - keep) * -torch.inf  # <-- origin
        return (score.softmax(1)[..., None] * x).sum(1)


class Summary(nn.Module):
    def __init__(self):
        super().__init__()
        self.select = Select()
        self.out = nn.Linear(5, 5)

    def forward(self, x, keep=None):
        return self.out(self.select(x, keep))


torch.manual_seed(1)
net = Summary()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 6, 5)
    keep = (torch.arange(6) < torch.tensor([[6], [4], [2], [5]])).float() if step == 1 else None
    loss = (net(x, keep) - x.mean(1)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
