# case: rnn-state-buffer-inplace
# run: python rnn-state-buffer-inplace.py (exit status 1)
# kind: error
# phase: forward
# op: aten::copy_
# module: rnn
# step: 0
# note: every write into the preallocated states raises the version of the whole buffer, and the cell's
#   linear layer has kept slice t of it for backward; collect the states in a list and stack them
import torch
from torch import nn


class PlainRNN(nn.Module):
    def __init__(self, inp, hidden):
        super().__init__()
        self.hidden = hidden
        self.ih = nn.Linear(inp, hidden)
        self.hh = nn.Linear(hidden, hidden)

    def forward(self, x):
        steps, batch, _ = x.shape
        states = torch.zeros(steps + 1, batch, self.hidden)
        for t in range(steps):
            new = torch.tanh(self.ih(x[t]) + self.hh(states[t]))
            states[t + 1] = new  # <-- origin
        return states[1:]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.rnn = PlainRNN(8, 12)
        self.out = nn.Linear(12, 4)

    def forward(self, tokens):
        return self.out(self.rnn(self.emb(tokens)))


torch.manual_seed(0)
net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(3):
    tokens = torch.randint(0, 20, (5, 6))
    loss = nn.functional.cross_entropy(net(tokens).flatten(0, 1), (tokens % 4).flatten())
    print("step", step, "loss", round(loss.item(), 4), flush=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
