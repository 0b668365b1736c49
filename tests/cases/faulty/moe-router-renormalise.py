# case: moe-router-renormalise
# kind: nan
# phase: forward
# op: aten::div_
# module: moe.router
# step: 2
# note: a token that loses all its experts to the capacity limit has gates 0, and the in-place
#   renormalisation is 0 / 0; clamp the sum
import torch
import torch.nn as nn


class Router(nn.Module):
    def __init__(self, d, experts, k, capacity):
        super().__init__()
        self.proj = nn.Linear(d, experts, bias=False)
        self.k, self.capacity = k, capacity

    def forward(self, x):
        probs = self.proj(x).softmax(-1)
        top = torch.zeros_like(probs).scatter(1, probs.topk(self.k, -1).indices, 1.0)
        place = top.cumsum(0) * top
        kept = top * (place <= self.capacity)
        gates = probs * kept
        gates.div_(gates.sum(-1, keepdim=True))  # <-- origin
        return gates


class MoE(nn.Module):
    def __init__(self, d=8, experts=4):
        super().__init__()
        self.router = Router(d, experts, k=2, capacity=9)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 16), nn.GELU(), nn.Linear(16, d)) for _ in range(experts)
        )

    def forward(self, x):
        gates = self.router(x)
        return sum(gates[:, i : i + 1] * e(x) for i, e in enumerate(self.experts))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 8)
        self.moe = MoE()
        self.head = nn.Linear(8, 40)

    def forward(self, ids):
        h = self.emb(ids)
        return self.head(h + self.moe(h))


def main():
    torch.manual_seed(5)
    model = LM()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        ids = (
            torch.arange(13) * 3 % 40 + step if step != 2 else torch.full((13,), 7)
        )  # a batch of one repeated token
        loss = nn.functional.cross_entropy(model(ids % 40), ids.roll(-1) % 40)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")


main()
