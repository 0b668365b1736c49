# case: attention-head-prune-inplace
# run: python attention-head-prune-inplace.py (exit status 1)
# kind: error
# phase: forward
# op: aten::fill_, aten::copy_, aten::zero_
# module: block.attn
# step: 2
# note: softmax needs its own result in backward, and from step 2 on a head is switched off by writing
#   zeros into that result; multiply by a head mask instead
import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.pruned = []

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5, dim=-1)
        for head in self.pruned:
            weights[:, head] = 0.0  # <-- origin
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, d=16, heads=4):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.attn = Attention(d, heads)

    def forward(self, x):
        return x + self.attn(self.norm(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.block(x).mean(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Classifier()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        if step == 2:
            model.block.attn.pruned.append(1)
        x, y = torch.randn(8, 6, 16), torch.randint(0, 2, (8,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)
