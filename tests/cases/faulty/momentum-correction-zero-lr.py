# case: momentum-correction-zero-lr
# kind: inf
# phase: optimizer
# op: aten.mul_
# module:
# step: 1
# note: momentum correction scales the velocity by lr / previous lr; the warm-up starts at exactly 0, so
#   numpy gives 0.02 / 0 = inf (a scalar argument) and the velocity becomes inf, then the weights. Start
#   the warm-up at (step + 1) / warmup.
import numpy as np
import torch
from torch import nn


class CorrectedSGD(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum, "previous": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            correction = float(np.float64(group["lr"]) / np.float64(group["previous"]))  # <-- cause
            for p in group["params"]:
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(p)
                v = state["velocity"]
                v.mul_(group["momentum"] * correction)  # <-- origin
                v.add_(p.grad)
                p.add_(v, alpha=-group["lr"])
            group["previous"] = group["lr"]


def main():
    np.seterr(divide="ignore", invalid="ignore")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(7, 14), nn.Softplus(), nn.Linear(14, 4))
    opt = CorrectedSGD(net.parameters(), lr=0.1)
    opt.param_groups[0]["previous"] = 0.1
    warmup, peak = 5, 0.1
    for step in range(6):
        lr = peak * min(1.0, step / warmup)
        for group in opt.param_groups:
            group["lr"] = lr
            if step == 0:
                group["previous"] = peak
        x = torch.randn(32, 7)
        loss = nn.functional.cross_entropy(net(x), x[:, :4].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} lr {lr:.3f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
