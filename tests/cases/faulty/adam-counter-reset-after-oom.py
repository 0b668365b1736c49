# case: adam-counter-reset-after-oom
# kind: inf
# phase: optimizer
# op: aten.div
# module: ''
# step: 3
# note: the recovery path rebuilds the hand-written Adam with t = 0, while a fresh start uses t = 1: 1 -
#   beta**0 = 0 and the bias correction divides the moments by zero; start the counter at 1 on both paths.
import math

import torch
from torch import nn


def adam_init(params, t=1):
    return {
        "t": torch.tensor(float(t)),
        "m": [torch.zeros_like(p) for p in params],
        "v": [torch.zeros_like(p) for p in params],
    }


@torch.no_grad()
def adam_update(params, state, lr=1e-2, b1=0.9, b2=0.99, eps=1e-8):
    fix1 = 1 - b1 ** state["t"]
    fix2 = 1 - b2 ** state["t"]
    for p, m, v in zip(params, state["m"], state["v"], strict=False):
        m.mul_(b1).add_(p.grad, alpha=1 - b1)
        v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
        m_hat = m / fix1  # <-- origin
        v_hat = v / fix2
        p.sub_(lr * m_hat / (v_hat.sqrt() + eps))
        p.grad = None
    state["t"] += 1


class Alloc:
    """Fails once, as a fragmented allocator does."""

    def __init__(self, at):
        self.at = at

    def check(self, step):
        if step == self.at:
            self.at = -1
            raise RuntimeError("out of memory: tried to allocate 2.00 GiB")


def main():
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(3, 10), nn.Tanh(), nn.Linear(10, 1))
    params = list(net.parameters())
    state, alloc = adam_init(params), Alloc(at=3)
    saved = {k: v.clone() for k, v in net.state_dict().items()}
    step = 0
    while step < 7:
        x = torch.randn(24, 3)
        y = torch.sin(x.sum(1, keepdim=True))
        try:
            loss = nn.functional.mse_loss(net(x), y)
            alloc.check(step)
            loss.backward()
        except RuntimeError as err:
            print(f"step {step} {err}; going back to the last snapshot")
            net.load_state_dict(saved)
            state = adam_init(params, t=0)
            continue
        adam_update(params, state)
        saved = {k: v.clone() for k, v in net.state_dict().items()}
        norm = math.sqrt(sum(p.detach().square().sum().item() for p in params))
        print(f"step {step} loss {loss.item():.4f} |w| {norm:.3f}")
        step += 1


if __name__ == "__main__":
    main()
