# case: fake-quant-dead-range
# kind: nan
# phase: forward
# op: aten.div
# module: quant_out
# step: 3
# note: the activation range of a batch without any positive unit is max - min = 0, so the scale is 0 and
#   (x - low) / scale is 0/0 inside a custom Function's forward. Clamp the scale; the straight-through
#   backward is innocent.
import torch
from torch import nn


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, scale):
        levels = (x - low) / scale  # <-- origin
        return levels.round() * scale + low

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


class FakeQuant(nn.Module):
    def __init__(self, bits=4):
        super().__init__()
        self.levels = 2**bits - 1

    def forward(self, x):
        with torch.no_grad():
            low, high = torch.aminmax(x)
            scale = (high - low) / self.levels
        return RoundSTE.apply(x, low, scale)


class QuantNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant_in = FakeQuant(8)
        self.fc1 = nn.Linear(6, 12)
        self.quant_out = FakeQuant(4)
        self.fc2 = nn.Linear(12, 2)

    def forward(self, x):
        h = torch.relu(self.fc1(self.quant_in(x)) + self.gate)
        return self.fc2(self.quant_out(h))

    gate = 0.0


def main():
    torch.manual_seed(0)
    net = QuantNet()
    opt = torch.optim.Adamax(net.parameters(), lr=2e-3)
    for step, gate in enumerate([0.5, 0.5, 0.0, -9.0, 0.0]):  # a sparsity schedule gone too far
        net.gate = gate
        x = torch.randn(20, 6)
        loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} gate {gate} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
