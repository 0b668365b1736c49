# case: gate-inverse-saturated
# kind: nan
# phase: backward
# op: aten::div
# module: layers.1.gate
# step: 2
# note: a saturated gate is inverted in a custom backward by dividing 0 by 0
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


class RebuildGate(torch.autograd.Function):
    """y = x * s + b, keeps only the output and rebuilds x in the backward."""

    @staticmethod
    def forward(ctx, x, s, b):
        y = x * s + b
        ctx.save_for_backward(y, s, b)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, s, b = ctx.saved_tensors
        x = (y - b) / s  # <-- origin
        return grad * s, grad * x, grad


class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Linear(2, dim)
        self.shift = nn.Linear(2, dim)

    def forward(self, x, context):
        return RebuildGate.apply(x, torch.sigmoid(self.scale(context)), self.shift(context))


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.Linear(dim, dim)
        self.gate = Gate(dim)

    def forward(self, x, context):
        return x + self.gate(torch.tanh(self.mix(x)), context)


class Net(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.layers = nn.ModuleList(Layer(dim) for _ in range(2))
        self.out = nn.Linear(dim, 1)
        with torch.no_grad():
            self.layers[0].gate.scale.weight.mul_(0.01)
            self.layers[1].gate.shift.weight.zero_()
            self.layers[1].gate.shift.bias.zero_()

    def forward(self, x, context):
        for layer in self.layers:
            x = layer(x, context)
        return self.out(x).squeeze(-1)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    x, context = torch.randn(8, 6), torch.rand(8, 2)
    if step == 2:
        context[1] = 900.0  # context in raw units, not as a fraction
    loss = F.mse_loss(net(x, context), x.sum(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
