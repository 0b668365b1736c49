# case: weightnorm-pruned-filter
# kind: nan
# phase: forward
# op: aten::_weight_norm_interface, aten::_weight_norm
# module: conv.parametrizations.weight.0
# step: 2
# note: after the second update a whole filter of v is set to zero, and weight_norm computes v * (g / |v|)
#   = 0 * inf inside one op; remove the parametrization before pruning, or prune g instead of v
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm


class TCN(nn.Module):
    def __init__(self, channels=6):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(2, channels, 3, padding=1))
        self.read = nn.Linear(channels, 1)

    def forward(self, x):
        h = torch.relu(self.conv(x))  # <-- origin
        return self.read(h.mean(-1)).squeeze(-1)


def prune_smallest(conv):
    v = conv.parametrizations.weight.original1
    with torch.no_grad():
        v[v.flatten(1).norm(dim=1).argmin()] = 0.0


def main():
    torch.manual_seed(0)
    model = TCN()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = torch.randn(16, 2, 20), torch.randn(16)
    for step in range(4):
        opt.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        opt.step()
        if step == 1:
            prune_smallest(model.conv)
        print("step", step, "mse", loss.item())


if __name__ == "__main__":
    main()
