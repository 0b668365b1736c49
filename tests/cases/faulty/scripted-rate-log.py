# case: scripted-rate-log
# kind: inf
# phase: forward
# op: aten::log
# module: ''
# step: 1
# note: a count of 0 makes log(0) = -inf inside a scripted loss; add 1 before the log (log1p). Inside scripted
#   code no Python frame exists, so the call line is accepted too
import torch
from torch import nn


@torch.jit.script
def log_ratio(pred, count):
    gap = pred - torch.log(count)  # <-- origin
    return (gap * gap).mean()


torch.manual_seed(6)
net = nn.Sequential(nn.Linear(3, 6), nn.ELU(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    count = torch.randint(1, 9, (8, 1)).float()
    if step == 1:
        count[4] = 0.0
    loss = log_ratio(net(torch.randn(8, 3)), count)  # <-- seen
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
