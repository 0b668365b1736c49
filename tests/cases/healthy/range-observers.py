# case: range-observers
# kind: none
# note: the observer's buffers begin at +inf and -inf and are narrowed by the first batch; one observer never
#   sees data and keeps its start values
import torch
from torch import nn


class Observer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.tensor(float("inf")))
        self.register_buffer("high", torch.tensor(float("-inf")))

    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.detach().amin()))
        self.high.copy_(torch.maximum(self.high, x.detach().amax()))
        return x


class FakeQuant(nn.Module):
    def __init__(self):
        super().__init__()
        self.watch = Observer()

    def forward(self, x):
        x = self.watch(x)
        step = (self.watch.high - self.watch.low).clamp(min=1e-8) / 255
        rounded = (x / step).round() * step
        return x + (rounded - x).detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.quant = FakeQuant()
        self.spare = FakeQuant()
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.quant(torch.relu(self.fc(x))))


torch.manual_seed(9)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(4):
    x = torch.randn(8, 3)
    loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), net.quant.watch.high.item(), net.spare.watch.high.item())
