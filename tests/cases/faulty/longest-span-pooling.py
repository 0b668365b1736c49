# case: longest-span-pooling
# kind: inf
# phase: forward
# op: aten::segment_reduce
# module: reader.pool
# step: 2
# note: the largest of an empty segment is -inf
import torch
import torch.nn as nn

torch.manual_seed(0)


class SpanMax(nn.Module):
    def forward(self, tokens, lengths):
        return torch.segment_reduce(tokens, "max", lengths=lengths, axis=0)  # <-- origin


class Reader(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim, dim)
        self.pool = SpanMax()

    def forward(self, ids, lengths):
        return self.pool(torch.tanh(self.mix(self.embed(ids))), lengths)


class ReviewScore(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = Reader(30, 10)
        self.score = nn.Linear(10, 1)

    def forward(self, ids, lengths):
        return self.score(self.reader(ids, lengths)).squeeze(-1)


reviews = [
    [[3, 4, 9], [11, 2], [7, 7, 1, 20]],
    [[15], [6, 28, 3, 3], [12, 19]],
    [[8, 8], [], [25, 4, 17]],  # an empty review
    [[1, 2, 3], [5], [21, 22]],
]
stars = torch.tensor([[5.0, 1.0, 3.0], [2.0, 4.0, 4.0], [1.0, 3.0, 5.0], [2.0, 2.0, 4.0]])

model = ReviewScore()
opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
for step, (batch, y) in enumerate(zip(reviews, stars, strict=False)):
    lengths = torch.tensor([len(r) for r in batch])
    ids = torch.tensor([i for r in batch for i in r])
    loss = nn.functional.mse_loss(model(ids, lengths), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("batch", step, "mse", round(loss.item(), 4))
