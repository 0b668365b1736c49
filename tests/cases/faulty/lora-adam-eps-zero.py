# case: lora-adam-eps-zero
# kind: nan
# phase: optimizer
# op: aten.addcdiv_, aten._foreach_addcdiv_
# module: up.adapter
# step: 3
# note: B of the adapter is zero, so the gradient of A is exactly zero in its first step, m = v = 0 and
#   Adam with eps=0 adds 0/0 to A; the adapter's group joins at step 3. Keep eps > 0.
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    width: int = 12
    rank: int = 3
    steps: int = 7
    adapt_from: int = 3
    lr: float = 2e-3
    eps: float = 0.0


class LowRank(nn.Module):
    def __init__(self, fan_in, fan_out, rank):
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, fan_in) / fan_in**0.5)
        self.b = nn.Parameter(torch.zeros(fan_out, rank))

    def forward(self, x):
        return (x @ self.a.t()) @ self.b.t()


class AdaptedLinear(nn.Module):
    def __init__(self, fan_in, fan_out, rank):
        super().__init__()
        self.base = nn.Linear(fan_in, fan_out)
        self.adapter = LowRank(fan_in, fan_out, rank)

    def forward(self, x):
        return self.base(x) + self.adapter(x)


class Tagger(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.up = AdaptedLinear(6, cfg.width, cfg.rank)
        self.down = nn.Linear(cfg.width, 4)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


def batches(n, seed):
    gen = torch.Generator().manual_seed(seed)
    for _ in range(n):
        x = torch.randn(16, 6, generator=gen)
        yield x, x[:, :4].argmax(1)


def train(cfg):
    torch.manual_seed(11)
    net = Tagger(cfg)
    base = [p for n, p in net.named_parameters() if "adapter" not in n]
    opt = torch.optim.Adam(base, lr=cfg.lr, eps=cfg.eps)
    for step, (x, y) in enumerate(batches(cfg.steps, 5)):
        if step == cfg.adapt_from:
            for p in base:
                p.requires_grad_(False)
            opt.add_param_group({"params": list(net.up.adapter.parameters()), "lr": 10 * cfg.lr})
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()  # <-- origin
        print(f"step {step} groups {len(opt.param_groups)} loss {loss.item():.4f}")


if __name__ == "__main__":
    train(Config())
