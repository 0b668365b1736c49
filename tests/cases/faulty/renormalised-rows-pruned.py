# case: renormalised-rows-pruned
# kind: nan
# phase: optimizer
# op: aten::div_, aten::div
# module: dictionary
# step: 1
# note: rows are rescaled to length 1 after every update, and a pruned row is 0: 0/0; use F.normalize or leave
#   empty rows alone
import torch
from torch import nn


class SparseCoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Linear(5, 7)
        self.dictionary = nn.Linear(7, 5, bias=False)

    def forward(self, x):
        return self.dictionary(torch.relu(self.code(x)))


def unit_atoms(net):
    with torch.no_grad():
        atoms = net.dictionary.weight
        atoms.div_(atoms.norm(dim=0, keepdim=True))  # <-- origin


torch.manual_seed(0)
net = SparseCoder()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(3):
    x = torch.randn(10, 5)
    loss = (net(x) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step == 1:
        with torch.no_grad():
            net.dictionary.weight[:, 2] = 0.0  # prune the weakest atom
    unit_atoms(net)
    print(step, loss.item())
