# case: rsqrt-then-clamp
# kind: inf
# phase: forward
# op: aten::rsqrt
# module: whiten
# step: 1
# note: rsqrt(0) is inf; the clamp after it repairs the forward but not rsqrt's saved output, and 0 * inf is
#   NaN in its backward; clamp before the rsqrt
import torch
from torch import nn


class Whiten(nn.Module):
    def forward(self, x):
        power = x.square().mean(-1, keepdim=True)
        gain = torch.rsqrt(power)  # <-- origin
        return x * gain.clamp(max=50.0)


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Linear(10, 6, bias=False)
        self.whiten = Whiten()
        self.word = nn.Linear(6, 4)

    def forward(self, clip):
        return self.word(self.whiten(self.filters(clip)))


torch.manual_seed(0)
net = Listener()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(3):
    clip = torch.randn(5, 10)
    if step == 1:
        clip[2] = 0.0  # a muted recording
    loss = nn.functional.cross_entropy(net(clip), torch.randint(0, 4, (5,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
