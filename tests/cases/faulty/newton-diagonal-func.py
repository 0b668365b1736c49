# case: newton-diagonal-func
# kind: inf
# phase: optimizer
# op: aten.div
# module: ''
# step: 3
# note: a diagonal Newton update with torch.func: gradient / curvature. At step 3 the loss switches to
#   absolute error, whose curvature is exactly 0 in both parameters, so g / 0 = inf. Damp the curvature. No
#   .backward() and no optimizer object in this loop.
import torch
from torch import nn
from torch.func import functional_call, grad, hessian


class Scale(nn.Module):
    """y = a * x + b, nothing more; small enough for a full Hessian."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(0.2))
        self.b = nn.Parameter(torch.tensor(-0.1))

    def forward(self, x):
        return self.a * x + self.b


def make_loss(net, x, y, robust):
    def loss(params):
        gap = functional_call(net, params, (x,)) - y
        return gap.abs().mean() if robust else 0.5 * gap.square().mean()

    return loss


def newton_update(params, grads, curves, rate):
    new = {}
    for name, value in params.items():
        move = grads[name] / curves[name][name]  # <-- origin
        new[name] = value - rate * move
    return new


def main():
    torch.manual_seed(3)
    net = Scale()
    params = {k: v.detach().clone() for k, v in net.named_parameters()}
    for step in range(6):
        x = torch.randn(31) + 1.0
        y = 1.7 * x + 0.4 + 0.05 * torch.randn(31)
        loss = make_loss(net, x, y, robust=step >= 3)
        value = loss(params)
        grads = grad(loss)(params)
        curves = hessian(loss)(params)
        params = newton_update(params, grads, curves, rate=0.5)
        print(f"step {step} loss {value.item():.4f} a {params['a'].item():.4f} b {params['b'].item():.4f}")
    net.load_state_dict(params)


if __name__ == "__main__":
    main()
