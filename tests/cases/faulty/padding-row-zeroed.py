# case: padding-row-zeroed
# run: python padding-row-zeroed.py (exit status 1)
# kind: error
# phase: forward, parameter
# op: aten::zero_, aten::fill_
# module: words, ''
# step: 0
# note: a row of the embedding is a view of a leaf that requires grad and must not change in place; write to
#   weight.data or use torch.no_grad()
import torch
from torch import nn


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 3)
        self.fc = nn.Linear(3, 2)

    def forward(self, ids):
        return self.fc(self.words(ids).sum(1))


torch.manual_seed(2)
net = Bag()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    net.words.weight[0].zero_()  # <-- origin
    loss = nn.functional.cross_entropy(net(torch.randint(0, 8, (4, 3))), torch.tensor([0, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
