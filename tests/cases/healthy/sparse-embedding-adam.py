# case: sparse-embedding-adam
# kind: none
# note: sparse gradients with SparseAdam and SGD, an EmbeddingBag with empty bags and a max_norm; nothing is
#   bad
import torch
from torch import nn


class Ads(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 6, mode="mean", sparse=True)
        self.site = nn.Embedding(10, 6, sparse=True, max_norm=1.0)
        self.out = nn.Linear(6, 1)

    def forward(self, words, offsets, site):
        return self.out(self.bag(words, offsets) * self.site(site)).squeeze(1)


torch.manual_seed(0)
net = Ads()
sparse = torch.optim.SparseAdam([net.bag.weight, net.site.weight], lr=0.01)
dense = torch.optim.SGD(net.out.parameters(), lr=0.1)
for step in range(4):
    words = torch.randint(0, 40, (11,))
    offsets = torch.tensor([0, 3, 3, 7])  # the second bag is empty
    logit = net(words, offsets, torch.randint(0, 10, (4,)))
    loss = nn.functional.binary_cross_entropy_with_logits(logit, torch.tensor([1.0, 0.0, 0.0, 1.0]))
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(step, loss.item())
