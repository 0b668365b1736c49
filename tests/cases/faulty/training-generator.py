# case: training-generator
# kind: nan
# phase: forward
# op: aten::div
# module: attend
# step: 3
# note: hand-written attention weights are normalised by their sum, which is 0 when ReLU removes all of them;
#   add eps. The training loop is a generator function
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)

    def forward(self, x):
        weight = torch.relu(self.score(x))
        weight = weight / weight.sum(1, keepdim=True)  # <-- origin
        return (weight * x).sum(1)


class Pooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Attend()
        self.fc = nn.Linear(4, 2)
        nn.init.constant_(self.attend.score.bias, 2.0)

    def forward(self, x):
        return self.fc(self.attend(x))


def batches():
    for n in range(5):
        yield torch.randn(3, 6, 4) * 0.5, torch.tensor([0, 1, n % 2])


def training(net, opt):
    for n, (x, y) in enumerate(batches()):
        if n == 3:
            with torch.no_grad():
                net.attend.score.bias.fill_(-9.0)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield loss.item()


torch.manual_seed(9)
net = Pooler()
for value in training(net, torch.optim.Adam(net.parameters(), lr=1e-3)):
    print(f"{value:.4f}")
