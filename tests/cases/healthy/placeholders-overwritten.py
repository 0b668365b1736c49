# case: placeholders-overwritten
# kind: none
# note: memory from torch.empty and a NaN-filled placeholder are overwritten before anybody reads them; a
#   NaN-filled log is only printed
import torch
from torch import nn

torch.use_deterministic_algorithms(True)


class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x):
        h = x.new_zeros(x.size(0), 4)
        out = torch.empty(x.size(1), x.size(0), 4)
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            out[t] = h
        return out.mean(0)


torch.manual_seed(4)
net = nn.Sequential(Scan(), nn.Linear(4, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
history = torch.full((8,), torch.nan)
for step in range(5):
    x = torch.randn(6, 5, 3)
    target = torch.full((6, 1), torch.nan)
    target[:3] = x[:3].sum((1, 2))[:, None]
    target[3:] = -1.0
    loss = nn.functional.l1_loss(net(x), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    history[step] = loss.item()
    print(step, loss.item())
print(history.tolist())
