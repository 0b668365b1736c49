# case: two-saturated-masks
# kind: none
# note: two masks of the lowest number add up to -inf, which softmax turns into 0
import torch
import torch.nn as nn

torch.manual_seed(3)


class MaskedSelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.scale = dim**-0.5

    def forward(self, x, keep):
        n = x.size(1)
        lowest = torch.finfo(x.dtype).min
        future = torch.full((n, n), lowest).triu(1)
        padding = (1.0 - keep.to(x.dtype)) * lowest
        bias = future.unsqueeze(0) + padding.unsqueeze(1)
        score = torch.baddbmm(bias, self.q(x), self.k(x).transpose(1, 2), alpha=self.scale)
        return score.softmax(dim=-1) @ self.v(x)


class LanguageModel(nn.Module):
    def __init__(self, vocab=24, dim=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(MaskedSelfAttention(dim) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids, keep):
        h = self.embed(ids)
        for layer, norm in zip(self.layers, self.norms, strict=False):
            h = h + layer(norm(h), keep)
        return self.out(h)


def batch():
    ids = torch.randint(1, 24, (5, 9))
    length = torch.tensor([9, 4, 7, 1, 5])
    keep = torch.arange(9) < length[:, None]
    return ids * keep, keep


model = LanguageModel()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(4):
    ids, keep = batch()
    logits = model(ids, keep)[:, :-1]
    target = ids[:, 1:].masked_fill(~keep[:, 1:], -100)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
