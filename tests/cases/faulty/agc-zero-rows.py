# case: agc-zero-rows
# kind: nan
# phase: optimizer
# op: aten.div
# module: ''
# step: 2
# note: unit-wise clipping divides the weight norm of each row by its gradient norm; the padding row of the
#   embedding has both zero, so 0/0. Clipping starts at step 2 (after warm-up). Clamp both norms from below.
import argparse

import torch
from torch import nn


class BagOfWords(nn.Module):
    def __init__(self, vocab=30, dim=8, classes=3):
        super().__init__()
        self.table = nn.Embedding(vocab, dim, padding_idx=0)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        real = (ids != 0).unsqueeze(-1)
        pooled = (self.table(ids) * real).sum(1) / real.sum(1)
        return self.head(pooled)


def row_norm(t):
    return t.norm(dim=tuple(range(1, t.dim())), keepdim=True) if t.dim() > 1 else t.norm()


@torch.no_grad()
def adaptive_clip(params, factor):
    clipped = 0
    for p in params:
        limit = factor * row_norm(p)
        gain = limit / row_norm(p.grad)  # <-- origin
        clipped += int((gain < 1).sum())
        p.grad.mul_(gain.clamp(max=1.0))
    return clipped


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=6)
    ap.add_argument("--clip-from", type=int, default=2)
    ap.add_argument("--factor", type=float, default=0.02)
    return ap.parse_args()


def main():
    args = parse()
    torch.manual_seed(4)
    net = BagOfWords()
    opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9, nesterov=True)
    for step in range(args.steps):
        ids = torch.randint(1, 30, (200, 9))
        ids[:, 5:] = ids[:, 5:] * (torch.rand(200, 4) < 0.5)
        loss = nn.functional.cross_entropy(net(ids), ids[:, 0] % 3)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        clipped = adaptive_clip(net.parameters(), args.factor) if step >= args.clip_from else 0
        opt.step()
        print(f"step {step} loss {loss.item():.4f} clipped rows {clipped}")


main()
