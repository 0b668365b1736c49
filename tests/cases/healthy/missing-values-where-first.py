# case: missing-values-where-first
# kind: none
# note: missing readings are NaN in the data; where() replaces them before any use, and nanmean, nanmedian and
#   nanquantile ignore them for the scale
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(2)
table = rng.normal(size=(48, 4)).astype(np.float32)
table[rng.random((48, 4)) < 0.2] = np.nan
data = torch.from_numpy(table)
present = ~data.isnan()
center = data.nanmean(0)
spread = data.nanquantile(0.9, dim=0) - data.nanmedian(0).values
clean = torch.where(present, (torch.where(present, data, center) - center) / spread, torch.zeros(()))

torch.manual_seed(2)
net = nn.Sequential(nn.Linear(8, 10), nn.ReLU(), nn.Linear(10, 4))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    for rows, there in zip(clean.split(12), present.split(12), strict=True):
        hide = torch.rand(rows.shape) < 0.3
        seen = rows.masked_fill(hide, 0.0)
        gap = net(torch.cat([seen, (there & ~hide).float()], dim=1)) - rows
        loss = (gap.square() * there).sum() / there.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("epoch", epoch, loss.item())
