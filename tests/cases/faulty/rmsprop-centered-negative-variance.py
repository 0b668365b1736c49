# case: rmsprop-centered-negative-variance
# kind: nan
# phase: optimizer
# op: aten.sqrt_, aten.sqrt, aten._foreach_sqrt_
# module: bias_net
# step: 9, 10, 11, 12, 13, 14, 15, 16, 17
# note: with a constant gradient E[g^2] - E[g]^2 is zero up to rounding, and a rounding below zero makes
#   sqrt_ NaN inside RMSprop(centered=True); loss and gradients are finite. Larger eps does not help (it is
#   added after the root); use centered=False.
import torch
from torch import nn


class Offset(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return x + self.shift


class Calibrator(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias_net = Offset(6)

    def forward(self, x):
        return self.bias_net(x)


def main():
    torch.manual_seed(0)
    net = Calibrator()
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-3, alpha=0.3, eps=1e-3, centered=True)
    price = torch.tensor([0.3, 0.7, 1.1, 1.9, 2.3, 3.7])
    base = torch.randn(5, 6)
    for step in range(18):
        out = net(base)
        loss = (out * price).sum(1).mean()  # linear cost: its gradient never changes
        opt.zero_grad()
        loss.backward()
        opt.step()  # <-- origin
        print(f"step {step} loss {loss.item():.5f} grad {net.bias_net.shift.grad[0].item():.4f}")


if __name__ == "__main__":
    main()
