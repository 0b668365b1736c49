# case: lbfgs-poisson-no-linesearch
# kind: inf
# phase: forward
# op: aten.exp
# module: rate
# step: 3
# note: L-BFGS with lr=1.5 and no line search overshoots, exp of the linear predictor overflows inside a
#   closure call; use line_search_fn="strong_wolfe" or the log-rate form of the loss. The overflow happens
#   in the closure's forward, although optimizer.step() is on the stack.
import torch
from torch import nn


class LogLinear(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.coef = nn.Linear(dim, 1)
        nn.init.zeros_(self.coef.weight)
        nn.init.zeros_(self.coef.bias)

    def forward(self, x):
        eta = self.coef(x).squeeze(1)
        return torch.exp(eta)  # <-- origin


class CountModel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rate = LogLinear(dim)

    def forward(self, x):
        return self.rate(x)


def data():
    gen = torch.Generator().manual_seed(21)
    x = torch.randn(64, 4, generator=gen) * torch.tensor([2.0, 8.0, 1.0, 4.0])
    rate = torch.exp(0.4 * x[:, 0] - 0.3 * x[:, 1] + 1.0)
    return x, torch.poisson(rate, generator=gen)


def main():
    torch.manual_seed(0)
    x, counts = data()
    net = CountModel(4)
    opt = torch.optim.LBFGS(net.parameters(), lr=1.5, max_iter=4, history_size=5)
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        opt.zero_grad()
        rate = net(x)
        loss = (rate - counts * torch.log(rate + 1e-8)).mean()
        loss.backward()
        return loss

    for step in range(4):
        loss = opt.step(closure)
        print(f"outer step {step} closure calls {calls} loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
