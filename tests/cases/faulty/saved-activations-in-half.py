# case: saved-activations-in-half
# kind: inf
# phase: forward
# op: aten::_to_copy, aten::to, aten::half
# module:
# step: 2
# note: a hook on saved tensors packs an activation into half precision, where it overflows
import torch
import torch.nn as nn
from torch.autograd.graph import saved_tensors_hooks

torch.manual_seed(0)


def pack(t):
    """Keep activations for the backward in half the memory."""
    if t.dtype == torch.float32 and t.dim() > 1:
        return True, t.to(torch.float16)  # <-- origin
    return False, t


def unpack(item):
    small, t = item
    return t.float() if small else t


class Traffic(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 16)
        self.body = nn.Sequential(nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
        self.out = nn.Linear(16, 1)

    def forward(self, counts):
        return self.out(self.body(self.stem(counts))).squeeze(-1)


def sensors(step):
    counts = torch.rand(8, 4) * 20.0
    if step == 2:
        counts[3, 1] = 9.0e4  # counter that was not reset over the weekend
    return counts, counts.clamp(max=20.0).mean(-1) / 20.0


model = Traffic()
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(4):
    counts, target = sensors(step)
    with saved_tensors_hooks(pack, unpack):
        loss = nn.functional.mse_loss(model(counts), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.5f}")
