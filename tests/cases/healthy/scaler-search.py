# case: scaler-search
# kind: none
# note: GradScaler begins far too high, skips updates until its scale fits, and probes upwards again later;
#   all of it is normal
import torch
from torch import nn

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=4)
taken = 0
for it in range(20):
    x = torch.randn(24, 8)
    y = x[:, :3].argmax(1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(x), y, reduction="sum")
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    scaler.step(opt)
    before = scaler.get_scale()
    scaler.update()
    taken += scaler.get_scale() >= before
    print(it, round(loss.item(), 3), scaler.get_scale())
print("updates taken", int(taken))
