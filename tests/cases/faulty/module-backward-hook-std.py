# case: module-backward-hook-std
# kind: nan
# phase: backward
# op: aten::std
# module: neck, ''
# step: 2
# note: a full backward hook standardises the gradient of a module's input over the batch; the last batch has
#   one row, whose unbiased std is NaN; use correction=0 and an eps
import torch
from torch import nn


def standardise(module, grad_input, grad_output):
    (g,) = grad_input
    spread = g.std(0, keepdim=True)  # <-- origin
    return (1e-2 * g / (spread + 1e-6),)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.eye = nn.Linear(5, 4)
        self.neck = nn.Tanh()
        self.count = nn.Linear(4, 1)

    def forward(self, x):
        return self.count(self.neck(self.eye(x)))


torch.manual_seed(5)
net = Counter()
net.neck.register_full_backward_hook(standardise)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step, x in enumerate(torch.randn(17, 5).split(8)):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, len(x), loss.item())
print("weights finite:", all(bool(p.isfinite().all()) for p in net.parameters()))
