# case: entropy-log-then-where
# kind: inf
# phase: forward
# op: aten::log
# module: ''
# step: 2
# note: torch.where drops p * log(p) at p = 0, yet log(0) = -inf was saved for the product's backward and
#   meets a zero gradient there; use torch.special.xlogy or clamp p first
import torch
from torch import nn

torch.manual_seed(5)
router = nn.Linear(4, 6)
opt = torch.optim.Adam(router.parameters(), lr=1e-2)


def load_entropy(load):
    logs = load.log()  # <-- origin
    return -torch.where(load > 0, load * logs, torch.zeros_like(load)).sum()


for step in range(4):
    x = torch.randn(9, 4)
    gate = router(x).softmax(-1)
    if step == 2:
        gate = gate * torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 1.0])  # an expert is switched off
    loss = -0.1 * load_entropy(gate.mean(0)) + (gate.sum(-1) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", round(loss.item(), 4))
