# case: logsumexp-no-candidate
# kind: nan
# phase: forward
# op: aten::sub
# module: ranker
# step: 1
# note: a query without any candidate has only -inf scores and their logsumexp is -inf, so the difference is
#   NaN; drop such queries first
import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear = nn.Bilinear(4, 4, 1)

    def forward(self, query, docs, present):
        n = docs.size(1)
        score = self.bilinear(query[:, None].expand(-1, n, -1).contiguous(), docs).squeeze(-1)
        score = score.masked_fill(~present, float("-inf"))
        log_share = score - score.logsumexp(1, keepdim=True)  # <-- origin
        return log_share


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 4)
        self.ranker = Ranker()

    def forward(self, query, docs, present):
        return self.ranker(self.embed(query), self.embed(docs), present)


torch.manual_seed(9)
search = Search()
opt = torch.optim.SGD(search.parameters(), lr=0.1)
for batch in range(3):
    present = torch.rand(6, 5) > 0.3
    present[:, 0] = True
    if batch == 1:
        present[4] = False
    out = search(torch.randint(0, 30, (6,)), torch.randint(0, 30, (6, 5)), present)
    loss = -out[:, 0].mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(batch, loss.item())
