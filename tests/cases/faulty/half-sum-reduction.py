# case: half-sum-reduction
# kind: inf
# phase: forward
# op: aten::sum
# module: ''
# step: 2
# note: a summed loss over 4096 errors of up to 40 passes 65504 in float16; convert to float32 before the
#   reduction
import torch
from torch import nn

torch.manual_seed(2)
net = nn.Conv1d(1, 1, 5, padding=2).half()
opt = torch.optim.SGD(net.parameters(), lr=1e-7)


def total_error(pred, truth):
    return (pred - truth).abs().sum()  # <-- origin


for step in range(4):
    signal = torch.randn(8, 1, 512).half()
    truth = signal + (0.0 if step < 2 else 40.0)
    loss = total_error(net(signal), truth)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
