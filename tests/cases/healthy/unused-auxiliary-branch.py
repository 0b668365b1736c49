# case: unused-auxiliary-branch
# kind: none
# note: the auxiliary output of the model is NaN (log of a negative value) and never used: no loss reads it
#   and evaluation drops it
import torch
from torch import nn


class TwoExits(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 5)
        self.main = nn.Linear(5, 2)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        diagnostic = h.detach().log().mean()
        self.last = diagnostic
        return self.main(h)


torch.manual_seed(7)
net = TwoExits()
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(9, 3)
    out = net(x)
    ratio = (x - x) / (x - x)  # computed for a plot that is switched off
    loss = nn.functional.cross_entropy(out, (x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), len(ratio))
net.eval()
with torch.no_grad():
    print(net(torch.randn(2, 3)).tolist())
