# case: unit-vectors-with-padding-row
# kind: nan
# phase: parameter, input
# op: aten::div, aten::div_
# module: embed, ''
# step: 0
# note: all word vectors are normalised at start, also the all-zero padding row: 0/0. The loss becomes NaN
#   only at step 2, with the first padded batch; leave the padding row out
import torch
from torch import nn


def unit(vectors):
    return vectors / vectors.norm(dim=1, keepdim=True)  # <-- origin


class Intent(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.fc = nn.Linear(4, 3)

    def forward(self, ids):
        return self.fc(self.embed(ids).sum(1))


torch.manual_seed(9)
vectors = torch.randn(14, 4)
vectors[0] = 0.0
net = Intent(unit(vectors))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    ids = torch.randint(1, 14, (5, 6))
    if step == 2:
        ids[1, 4:] = 0
    loss = nn.functional.cross_entropy(net(ids), torch.randint(0, 3, (5,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
