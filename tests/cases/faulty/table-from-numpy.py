# case: table-from-numpy
# kind: nan
# phase: input
# op:
# module:
# step: 0
# note: the table read from a file has an empty cell, which numpy turns into NaN; fill or drop missing cells
#   before training. The line that first computes with it is accepted too
import io

import numpy as np
import torch
from torch import nn

CSV = """age,income,score,label
31,4.1,0.2,0
45,,0.9,1
27,2.2,0.4,0
52,5.0,0.7,1
"""
table = np.genfromtxt(io.StringIO(CSV), delimiter=",", skip_header=1, dtype=np.float32)
data = torch.from_numpy(table)  # <-- origin
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(3):
    logit = net(data[:, :3])  # <-- seen
    loss = nn.functional.binary_cross_entropy_with_logits(logit, data[:, 3:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("epoch", epoch, loss.item())
