# case: log-mask-attention-bias
# kind: none
# note: log of a 0/1 mask gives the intended -inf; ALiBi's distances are finite and every query sees at
#   least itself, so softmax turns the -inf into exact zeros
import torch
import torch.nn as nn
import torch.nn.functional as F


class AlibiAttention(nn.Module):
    def __init__(self, d=16, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1).float())

    def forward(self, x, doc):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        pos = torch.arange(n)
        distance = (pos[None] - pos[:, None]).abs().float()
        same_doc = (doc[:, :, None] == doc[:, None, :]).float()
        visible = same_doc * torch.ones(n, n).tril()
        bias = torch.log(visible)[:, None] - self.slopes[:, None, None] * distance
        att = (q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5 + bias).softmax(-1)
        return self.out((att @ v).transpose(1, 2).reshape(b, n, d))


class PackedLM(nn.Module):
    def __init__(self, vocab=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, 16)
        self.attn = AlibiAttention()
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, vocab)

    def forward(self, ids, doc):
        h = self.emb(ids)
        return self.head(self.norm(h + self.attn(h, doc)))


torch.manual_seed(0)
lm = PackedLM()
opt = torch.optim.AdamW(lm.parameters(), lr=3e-3)
for step in range(5):
    ids = torch.randint(0, 24, (4, 11))
    doc = (torch.rand(4, 11) > 0.75).long().cumsum(1)
    loss = F.cross_entropy(lm(ids[:, :-1], doc[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step}: {loss.item():.4f}")
