# case: truncated-bptt
# kind: none
# note: a stateful LSTM with detached state, gradient clipping and a frozen copy; the log-perplexity starts at
#   inf and is replaced
import math

import torch
from torch import nn


class Char(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6)
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.out = nn.Linear(8, 9)

    def forward(self, ids, state):
        h, state = self.lstm(self.embed(ids), state)
        return self.out(h), state


torch.manual_seed(4)
net = Char()
opt = torch.optim.SGD(net.parameters(), lr=0.5)
text = torch.randint(0, 9, (3, 41))
state, best = None, math.inf
for piece in range(5):
    ids, target = text[:, piece * 8 : piece * 8 + 8], text[:, piece * 8 + 1 : piece * 8 + 9]
    logits, state = net(ids, state)
    state = tuple(s.detach() for s in state)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.25)
    opt.step()
    best = min(best, math.exp(loss.item()))
    print(piece, round(best, 3))
