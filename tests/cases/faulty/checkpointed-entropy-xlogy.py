# case: checkpointed-entropy-xlogy
# kind: nan
# phase: backward
# op: XlogyBackward0, aten.div
# module: blocks.1
# step: 2
# note: xlogy(p, p) is 0 at p = 0, but its slope in the second argument is p / p = 0/0; probabilities
#   underflow to exact zeros once the inputs are large. The block runs under non-reentrant checkpointing.
#   Use torch.special.entr or log_softmax.
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class GatedBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.value = nn.Linear(dim, dim)
        self.score = nn.Linear(dim, dim)

    def forward(self, x):
        p = self.score(x).softmax(-1)
        surprise = torch.xlogy(p, p).sum(-1, keepdim=True)  # <-- origin
        return x + p * self.value(x), surprise


class Stack(nn.Module):
    def __init__(self, dim=8, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(GatedBlock(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 3)

    def forward(self, x, boost):
        penalty = 0.0
        for i, block in enumerate(self.blocks):
            if i == 1:
                x = x * boost
            x, surprise = checkpoint(block, x, use_reentrant=False)
            penalty = penalty - surprise.mean()
            if i == 1:
                x = x / boost
        return self.head(x), penalty


def main():
    torch.manual_seed(0)
    net = Stack()
    opt = torch.optim.RAdam(net.parameters(), lr=1e-3)
    for step in range(5):
        boost = 1.0 if step < 2 else 300.0
        x = torch.randn(12, 8)
        logits, penalty = net(x, boost)
        loss = nn.functional.cross_entropy(logits, torch.randint(0, 3, (12,))) - 0.01 * penalty
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f} entropy {penalty.item():.4f}")


if __name__ == "__main__":
    main()
