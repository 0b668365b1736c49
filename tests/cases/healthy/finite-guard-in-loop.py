# case: finite-guard-in-loop
# kind: none
# note: a careful loop: zero-norm clipping, an isfinite guard, an averaged model with a correct first step,
#   checkpoint written and read again; nothing is bad
import copy
import io

import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.05, total_steps=6)
for step in range(5):
    x = torch.randn(6, 3)
    weight = float(step != 2)  # one batch counts nothing: loss and gradients are 0
    loss = weight * (net(x) - x.sum(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
    if torch.isfinite(norm):
        opt.step()
    schedule.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file)
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"])
    print(step, round(loss.item(), 4), round(norm.item(), 4))
