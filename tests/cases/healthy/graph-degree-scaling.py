# case: graph-degree-scaling
# kind: none
# note: degree ** -0.5 of an isolated node is inf and is set to 0 right away, once by isinf and once by
#   nan_to_num; degrees carry no gradient
import torch
from torch import nn


def normalised(adjacency, style):
    with torch.no_grad():
        scale = adjacency.sum(1).pow(-0.5)
        if style == "isinf":
            scale[scale.isinf()] = 0.0
        else:
            scale = scale.nan_to_num(posinf=0.0)
    return scale[:, None] * adjacency * scale


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 6)
        self.second = nn.Linear(6, 2)

    def forward(self, x, adjacency):
        h = torch.relu(self.first(normalised(adjacency, "isinf") @ x))
        return self.second(normalised(adjacency, "nan_to_num") @ h)


torch.manual_seed(6)
net = Graph()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    adjacency = (torch.rand(7, 7) < 0.4).float()
    adjacency = ((adjacency + adjacency.T) > 0).float()
    adjacency[4] = adjacency[:, 4] = 0.0
    loss = nn.functional.cross_entropy(net(torch.randn(7, 3), adjacency), torch.tensor([0, 1, 0, 1, 1, 0, 0]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, loss.item())
