# case: validation-between-epochs
# kind: inf
# phase: forward
# op: aten::exp
# module: scale
# step: 5, 6
# note: validation runs after every epoch of three steps; only the second one meets a sample of another unit
#   and exp overflows, after six updates; bound the exponent
import torch
from torch import nn


class ExpScale(nn.Module):
    def forward(self, x):
        return torch.exp(0.5 * x)  # <-- origin


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = ExpScale()
        self.fc = nn.Linear(2, 1)

    def forward(self, x):
        return self.fc(self.scale(x))


def validate(net, x):
    net.eval()
    with torch.no_grad():
        result = net(x).mean().item()
    net.train()
    return result


torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
held_out = [torch.randn(4, 2), torch.tensor([[0.5, 310.0], [0.1, 0.2]]), torch.randn(4, 2)]
for epoch in range(3):
    for _ in range(3):
        x = torch.randn(6, 2)
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch}: train {loss.item():.4f} held-out {validate(net, held_out[epoch]):.4f}")
