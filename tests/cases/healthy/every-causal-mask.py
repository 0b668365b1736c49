# case: every-causal-mask
# kind: none
# note: four ways to write a causal mask with -inf (buffer, masked_fill, full + triu, log of tril); every row
#   keeps one visible key
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, width, length, style):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.style = style
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden)
        self.register_buffer("bias", torch.zeros(length, length).masked_fill(hidden, -torch.inf))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        score = q @ k.mT / q.size(-1) ** 0.5
        n = x.size(1)
        if self.style == "buffer":
            score = score + self.bias[:n, :n]
        elif self.style == "fill":
            score = score.masked_fill(self.hidden[:n, :n], float("-inf"))
        elif self.style == "full":
            score = score + torch.full((n, n), -torch.inf).triu(1)
        else:
            score = score + torch.ones(n, n).tril().log()
        return x + score.softmax(-1) @ v


torch.manual_seed(0)
net = nn.Sequential(*[Head(6, 8, style) for style in ("buffer", "fill", "full", "log")], nn.Linear(6, 6))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
for step in range(4):
    x = torch.randn(3, 7 + step % 2, 6)
    loss = (net(x)[:, :-1] - x[:, 1:]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
