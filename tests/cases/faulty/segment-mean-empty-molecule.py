# case: segment-mean-empty-molecule
# kind: nan
# phase: forward
# op: aten::segment_reduce
# module: pool
# step: 2
# note: a molecule lost all its atoms in a filter, and segment_reduce("mean") of an empty segment is NaN;
#   pass initial=0 or drop such graphs
import torch
import torch.nn as nn


class MeanPool(nn.Module):
    def forward(self, atoms, sizes):
        return torch.segment_reduce(atoms, "mean", lengths=sizes, axis=0)  # <-- origin


class MolNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.atom = nn.Embedding(9, 12)
        self.mix = nn.Sequential(nn.Linear(12, 12), nn.SiLU())
        self.pool = MeanPool()
        self.energy = nn.Linear(12, 1)

    def forward(self, z, sizes):
        return self.energy(self.pool(self.mix(self.atom(z)), sizes)).squeeze(-1)


torch.manual_seed(0)
net = MolNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
all_sizes = torch.tensor([[3, 5, 2, 4], [6, 1, 1, 2], [4, 0, 3, 3], [2, 2, 2, 2]])
for step, sizes in enumerate(all_sizes):
    z = torch.randint(0, 9, (int(sizes.sum()),))
    loss = nn.functional.huber_loss(net(z, sizes), torch.randn(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, f"huber {loss.item():.4f}")
