# case: relative-position-buckets
# kind: none
# note: log(0) makes -inf for an offset of 0, and where() takes the exact bucket instead
import math

import torch
import torch.nn as nn

torch.manual_seed(0)


class RelativeBias(nn.Module):
    def __init__(self, heads, buckets=16, reach=32):
        super().__init__()
        self.buckets, self.reach = buckets, reach
        self.table = nn.Embedding(buckets, heads)

    def bucket(self, offset):
        half = self.buckets // 2
        side = (offset > 0).long() * half
        distance = offset.abs()
        exact = half // 2
        scaled = torch.log(distance.float() / exact) / math.log(self.reach / exact)
        far = exact + (scaled * (half - exact)).long()
        far = far.clamp(max=half - 1)
        return side + torch.where(distance < exact, distance, far)

    def forward(self, n):
        place = torch.arange(n)
        return self.table(self.bucket(place[None, :] - place[:, None])).permute(2, 0, 1)


class Attention(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.bias = RelativeBias(heads)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(n))
        return self.out(mixed.transpose(1, 2).reshape(b, n, d))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.attention = Attention()
        self.tag = nn.Linear(16, 4)

    def forward(self, ids):
        h = self.embed(ids)
        return self.tag(h + self.attention(h))


model = Tagger()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(5):
    ids = torch.randint(0, 20, (4, 14))
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), (ids % 4).flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}")
