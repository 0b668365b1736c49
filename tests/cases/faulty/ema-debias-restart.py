# case: ema-debias-restart
# kind: nan
# phase: optimizer
# op: aten.div
# module: ''
# step: 3
# note: the zero-debiased average is cleared when the rate drops, and published before its first new
#   sample: 0 / (1 - 0.9**0) = 0/0 goes into the copy that serves predictions; the trained weights stay
#   healthy. Publish after the update.
import copy

import torch
from torch import nn


class DebiasedAverage:
    def __init__(self, net, decay):
        self.net, self.decay = net, decay
        self.copy = copy.deepcopy(net).requires_grad_(False)
        self.clear()

    def clear(self):
        self.count = 0
        self.sums = [torch.zeros_like(p) for p in self.net.parameters()]

    @torch.no_grad()
    def collect(self):
        self.count += 1
        for s, p in zip(self.sums, self.net.parameters(), strict=False):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)

    @torch.no_grad()
    def publish(self):
        weight = 1.0 - self.decay**self.count
        for s, q in zip(self.sums, self.copy.parameters(), strict=False):
            q.copy_(s / weight)  # <-- origin


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 9), nn.SiLU(), nn.Linear(9, 2))
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=4, gamma=0.1)
    average = DebiasedAverage(net, 0.9)
    probe = torch.randn(4, 5)
    for step in range(4):
        x = torch.randn(32, 5)
        target = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs()], 1)
        loss = nn.functional.smooth_l1_loss(net(x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        before = opt.param_groups[0]["lr"]
        sched.step()
        if opt.param_groups[0]["lr"] < before:
            average.clear()
        else:
            average.collect()
        average.publish()
        served = average.copy(probe).mean().item()
        print(f"step {step} loss {loss.item():.4f} served mean {served:.4f}")


if __name__ == "__main__":
    main()
