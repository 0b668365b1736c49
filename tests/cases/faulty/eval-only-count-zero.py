# case: eval-only-count-zero
# kind: nan
# phase: forward
# op: aten::div
# module: neck.usage
# step: 3, 4
# note: the usage counter is only filled with track=True, which nobody passes, so every evaluation divides 0
#   by 0; clamp the total. Training does not read the counter
import torch
from torch import nn


class Usage(nn.Module):
    def __init__(self, slots):
        super().__init__()
        self.register_buffer("count", torch.zeros(slots))

    def forward(self, score, track=False):
        if self.training:
            if track:
                self.count += score.detach().sum(0)
            return score
        prior = self.count / self.count.sum()  # <-- origin
        return score * prior


class Neck(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.usage = Usage(4)

    def forward(self, x):
        return self.usage(self.mix(x).softmax(-1))


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.neck = Neck()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.neck(x))


torch.manual_seed(8)
net = Router()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(2):
    net.train()
    for _ in range(4):
        x = torch.randn(6, 4)
        loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: train {loss.item():.4f}, held-out {net(torch.randn(5, 4)).mean().item():.4f}")
