# case: adversarial-embedding-zero-gradient
# kind: nan
# phase: optimizer
# op: aten::div
# module: words, ''
# step: 2
# note: the adversarial shift of the embedding is eps * g / |g| with g = 0 when all samples have weight 0;
#   skip the attack when the norm is 0
import torch
from torch import nn


class Opinion(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 4)
        self.fc = nn.Linear(4, 2)

    def forward(self, ids):
        return self.fc(self.words(ids).mean(1))


class Attack:
    def __init__(self, weight):
        self.weight = weight

    @torch.no_grad()
    def __enter__(self):
        self.kept = self.weight.clone()
        shift = self.weight.grad / self.weight.grad.norm()  # <-- origin
        self.weight.add_(shift, alpha=0.1)

    @torch.no_grad()
    def __exit__(self, *error):
        self.weight.copy_(self.kept)


torch.manual_seed(8)
net = Opinion()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(4):
    ids, y = torch.randint(0, 12, (5, 3)), torch.randint(0, 2, (5,))
    weight = torch.ones(5) * (step != 2)
    opt.zero_grad()
    loss = (weight * nn.functional.cross_entropy(net(ids), y, reduction="none")).mean()
    loss.backward()
    with Attack(net.words.weight):
        hard = nn.functional.cross_entropy(net(ids), y)
        hard.backward()
    opt.step()
    print(step, round(loss.item(), 4), round(hard.item(), 4))
