# case: own-dispatch-mode
# kind: none
# note: the script counts operators with a dispatch mode of its own and makes -inf inside it for a maximum;
#   nothing is bad
from collections import Counter

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Tally(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = Counter()
        self.peak = torch.tensor(-torch.inf)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.calls[func.overloadpacket.__name__] += 1
        if isinstance(out, torch.Tensor) and out.dtype == torch.float32 and out.numel():
            self.peak = torch.maximum(self.peak, out.detach().amax())
        return out


torch.manual_seed(5)
net = nn.Sequential(nn.Linear(4, 6), nn.Hardswish(), nn.LayerNorm(6), nn.Linear(6, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(3):
    with Tally() as tally:
        loss = nn.functional.cross_entropy(net(torch.randn(7, 4)), torch.arange(7) % 2)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(step, loss.item(), tally.calls["addmm"], tally.peak.isfinite().item())
