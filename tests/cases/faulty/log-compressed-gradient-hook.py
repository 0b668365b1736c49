# case: log-compressed-gradient-hook
# kind: inf
# phase: backward
# op: aten::log, aten::log10
# module: relay, relay.fc
# step: 0
# note: a tensor hook compresses the gradient logarithmically, and entries behind dead ReLU units are exactly
#   0; use log1p
import torch
from torch import nn


def compress(grad):
    decades = grad.abs().log10()  # <-- origin
    return grad.sign() * (decades + 8).clamp(min=0) * 1e-3 + 1e-3 * decades * grad


class Relay(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x):
        h = self.fc(x)
        h.register_hook(compress)
        return torch.relu(h)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.relay = Relay()
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.relay(x))


torch.manual_seed(2)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for it in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(5, 4)), torch.tensor([0, 2, 1, 1, 0]))
    opt.zero_grad()
    loss.backward()  # <-- seen
    opt.step()
    print("iteration", it, "loss", loss.item())
