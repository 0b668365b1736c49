# case: optimizer-state-from-file
# kind: nan
# phase: input, parameter, optimizer
# op:
# module:
# step: 0, 1
# note: the saved second moment of the optimizer is NaN although the saved weights are fine; check the
#   optimizer's state as well when loading, or start with a fresh optimizer
import io

import torch
from torch import nn


def saved_run():
    net = nn.Linear(3, 2)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    net(torch.ones(1, 3)).sum().backward()
    opt.step()
    content = {"net": net.state_dict(), "opt": opt.state_dict()}
    content["opt"]["state"][1]["exp_avg_sq"].numpy()[0] = float("nan")
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return file


torch.manual_seed(6)
content = torch.load(saved_run())  # <-- seen
net = nn.Linear(3, 2)
net.load_state_dict(content["net"])
opt = torch.optim.Adam(net.parameters(), lr=0.01)
opt.load_state_dict(content["opt"])  # <-- origin
for step in range(3):
    loss = net(torch.randn(5, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), bool(net.bias.isfinite().all()))
