# case: float8-activation-store
# kind: inf
# phase: forward
# op: aten::_to_copy, aten::to
# module: blocks.1.quant
# step: 1
# note: a cast to float8 has no room for a large activation
import torch
import torch.nn as nn

torch.manual_seed(1)


class Float8Round(nn.Module):
    """Straight-through rounding of activations to an eight-bit float."""

    def __init__(self, dtype=torch.float8_e5m2):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        low = x.detach().to(self.dtype)  # <-- origin
        return x + (low.to(x.dtype) - x.detach())


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.quant = Float8Round()

    def forward(self, x):
        return torch.relu(self.quant(self.fc(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(8), Block(8)])
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        h = self.blocks[0](x)
        # second stage works on energies
        h = self.blocks[1](h.square())
        return self.out(h).squeeze(-1)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
for step in range(3):
    x = torch.randn(16, 8)
    if step == 1:
        x[3] *= 900.0
    y = torch.tanh(x.mean(-1))
    loss = nn.functional.smooth_l1_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
