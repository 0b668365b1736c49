# case: trainer-in-pool-thread
# kind: nan
# phase: forward
# op: aten::log2
# module: bits
# step: 1
# note: log2 of a negative value in a training loop that runs in a thread of a pool; use abs or clamp
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Bits(nn.Module):
    def forward(self, x):
        return x.log2()  # <-- origin


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bits = Bits()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(self.bits(x))


def fit(seed):
    torch.manual_seed(seed)
    net = Coder()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for step in range(3):
        x = torch.rand(5, 3) + 0.1
        if step == 1:
            x[2] -= 2.0
        loss = net(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    with ThreadPoolExecutor(max_workers=1) as pool:
        print(pool.submit(fit, 8).result())
