# case: functional-inner-loop-log
# kind: nan
# phase: forward
# op: aten::log
# module: head
# step: 2
# note: the adapted weights of the inner loop make the head's score negative and its log NaN; use softplus
#   before the log. The model runs through functional_call with weights that are no parameters
import torch
from torch import nn
from torch.func import functional_call


class PositiveHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
        nn.init.constant_(self.fc.bias, 5.0)

    def forward(self, h):
        return self.fc(h).log()  # <-- origin


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 4)
        self.head = PositiveHead()

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def adapted(net, x, y, rate):
    weights = dict(net.named_parameters())
    inner = (functional_call(net, weights, (x,)) - y).square().mean()
    grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
    return {name: w - rate * g for (name, w), g in zip(weights.items(), grads, strict=True)}


torch.manual_seed(5)
net = Learner()
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for task in range(4):
    x, y = torch.randn(6, 2), torch.rand(6, 1)
    rate = 0.1 if task != 2 else 40.0  # a typo in the task's configuration
    fast = adapted(net, x, y, rate)
    loss = (functional_call(net, fast, (x,)) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("task", task, "loss", loss.item())
