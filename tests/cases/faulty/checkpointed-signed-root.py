# case: checkpointed-signed-root
# kind: nan, inf
# phase: backward
# op: PowBackward0, aten::pow, aten::mul
# module: blocks.1.root
# step: 1
# note: sign(x) * |x| ** (1/3) has slope 0 * inf at 0, in a block under non-reentrant checkpointing; add eps
#   inside the power
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class SignedRoot(nn.Module):
    def forward(self, x):
        return x.sign() * x.abs().pow(1 / 3)  # <-- origin


class Block(nn.Module):
    def __init__(self, root):
        super().__init__()
        self.fc = nn.Linear(4, 4, bias=False)
        self.root = SignedRoot() if root else nn.Tanh()

    def forward(self, x):
        return self.root(self.fc(x))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(False), Block(True), Block(False)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


torch.manual_seed(6)
net = Deep()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(3):
    x = torch.randn(5, 4)
    if step == 1:
        x[4] = 0.0  # padding
    loss = net(x).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
