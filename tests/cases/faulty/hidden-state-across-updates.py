# case: hidden-state-across-updates
# run: python hidden-state-across-updates.py (exit status 1)
# kind: error
# phase: optimizer
# op: aten::add_, aten::_foreach_add_, aten::addcdiv_, aten::_foreach_addcdiv_
# module:
# step: 0, 1
# note: the hidden state is carried on without detach, so the second backward needs weights which the first
#   update has changed in place; detach the state between the pieces
import torch
from torch import nn

torch.manual_seed(3)
cell = nn.Linear(5, 3)
read = nn.Linear(3, 1)
opt = torch.optim.SGD([*cell.parameters(), *read.parameters()], lr=0.05)
h = torch.zeros(4, 3)
for piece in range(3):
    x = torch.randn(4, 6, 2)
    for t in range(6):
        h = torch.tanh(cell(torch.cat([h, x[:, t]], dim=1)))
    loss = (read(h) - x.mean((1, 2))[:, None]).square().mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()  # <-- origin
    print("piece", piece, "loss", loss.item())
