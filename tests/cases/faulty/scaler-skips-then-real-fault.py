# case: scaler-skips-then-real-fault
# kind: nan
# phase: forward
# op: aten::div
# module: ''
# step: 7
# note: the first skipped updates only search the loss scale and are healthy; from iteration 7 on every mask
#   is empty and its masked mean is 0/0; clamp the denominator
import torch
from torch import nn


def masked_mean(value, keep):
    total = (value * keep).sum()
    return total / keep.sum()  # <-- origin


torch.manual_seed(5)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17)
for it in range(11):
    x = torch.randn(16, 6)
    y = x[:, :4].argmax(1)
    keep = (torch.rand(16) < 0.8).float()
    if it >= 7:
        keep.zero_()
    with torch.autocast("cpu", dtype=torch.float16):
        each = nn.functional.cross_entropy(net(x) * 4, y, reduction="none")
        loss = masked_mean(each, keep)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    print(it, round(loss.item(), 3), scaler.get_scale())
