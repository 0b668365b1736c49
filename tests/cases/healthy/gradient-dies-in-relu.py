# case: gradient-dies-in-relu
# kind: none
# note: the root's gradient is inf or NaN at 0, but relu, clamp and masked_fill select and do not multiply, so
#   it never reaches a parameter
import torch
from torch import nn


class Roots(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        a, b, c = self.fc(x).unbind(1)
        first = torch.relu(a).sqrt()
        second = b.clamp(min=0.0).pow(0.5)
        dead = c < 0.0
        third = c.masked_fill(dead, 0.0).sqrt()
        return first + second + third


torch.manual_seed(8)
net = Roots()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(5):
    x = torch.randn(10, 4)
    loss = (net(x) - 1.0).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
print(all(bool(p.isfinite().all()) for p in net.parameters()))
