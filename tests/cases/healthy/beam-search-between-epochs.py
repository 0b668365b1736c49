# case: beam-search-between-epochs
# kind: none
# note: beam scores start at -inf except for one beam, and forbidden tokens get -inf, all under no_grad; the
#   decoder returns finite scores to the model's caller
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocabulary=7):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 6)
        self.cell = nn.GRUCell(6, 6)
        self.out = nn.Linear(6, vocabulary)

    def forward(self, token, h):
        h = self.cell(self.embed(token), h)
        return self.out(h).log_softmax(-1), h


@torch.no_grad()
def beam_search(net, beams=3, length=4):
    score = torch.full((beams,), -torch.inf)
    score[0] = 0.0
    token, h = torch.zeros(beams, dtype=torch.long), torch.zeros(beams, 6)
    for _ in range(length):
        logp, h = net(token, h)
        logp[:, 0] = -torch.inf  # the start token must not come again
        score, flat = (score[:, None] + logp).flatten().topk(beams)
        origin, token = flat // 7, flat % 7
        h = h[origin]
    return token.tolist(), score.tolist()


torch.manual_seed(0)
net = Decoder()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(2):
    for _ in range(3):
        words = torch.randint(1, 7, (5, 4))
        h, loss = torch.zeros(5, 6), 0.0
        token = torch.zeros(5, dtype=torch.long)
        for t in range(4):
            logp, h = net(token, h)
            loss = loss + nn.functional.nll_loss(logp, words[:, t])
            token = words[:, t]
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("epoch", epoch, loss.item(), *beam_search(net))
