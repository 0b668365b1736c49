# case: frequency-scaled-embedding-hook
# kind: nan
# phase: backward
# op: aten::div
# module: words, ''
# step: 0
# note: a parameter hook divides each row's gradient by the word's count in the batch; words that do not occur
#   have gradient 0 and count 0; clamp the count
import torch
from torch import nn


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(15, 4)
        self.fc = nn.Linear(4, 2)

    def forward(self, ids):
        return self.fc(self.words(ids).mean(1))


torch.manual_seed(3)
net = Bag()
seen = {}


def by_frequency(grad):
    return grad / seen["count"][:, None]  # <-- origin


net.words.weight.register_hook(by_frequency)
opt = torch.optim.SGD(net.parameters(), lr=0.3)
for step in range(3):
    ids = torch.randint(0, 15, (4, 5))
    seen["count"] = torch.bincount(ids.flatten(), minlength=15).float()
    loss = nn.functional.cross_entropy(net(ids), torch.tensor([0, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), "rows lost", int(net.words.weight.isnan().any(1).sum()))
