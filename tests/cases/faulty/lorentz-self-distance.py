# case: lorentz-self-distance
# kind: inf
# phase: backward
# op: AcoshBackward0, aten::acosh
# module: ''
# step: 2
# note: the two ends of a pair are the same node, whose Lorentz product is exactly 1 (or is clamped to it),
#   and acosh has an infinite slope there; clamp to 1 + 1e-6
import torch
import torch.nn as nn


class Hyperboloid(nn.Module):
    def __init__(self, nodes, dim):
        super().__init__()
        self.space = nn.Parameter(0.1 * torch.randn(nodes, dim))

    def forward(self, idx):
        s = self.space[idx]
        time = (1 + s.square().sum(-1, keepdim=True)).sqrt()
        return torch.cat([time, s], -1)


def lorentz_distance(a, b):
    inner = a[..., 0] * b[..., 0] - (a[..., 1:] * b[..., 1:]).sum(-1)
    inner = inner.clamp(min=1.0)
    return torch.acosh(inner)  # <-- origin


def main():
    torch.manual_seed(8)
    table = Hyperboloid(12, 3)
    with torch.no_grad():
        table.space[4] = torch.zeros(3)  # the root of the hierarchy sits in the centre
    opt = torch.optim.Adagrad(table.parameters(), lr=0.01)
    batches = [
        ([0, 1, 2], [3, 5, 6]),
        ([7, 8, 9], [10, 11, 1]),
        ([2, 4, 6], [8, 4, 0]),
        ([1, 3, 5], [0, 2, 7]),
    ]
    for step, (left, right) in enumerate(batches):
        u, v = table(torch.tensor(left)), table(torch.tensor(right))
        near = lorentz_distance(u, v)
        far = lorentz_distance(u, table(torch.randint(9, 12, (3,)).roll(1)))
        loss = torch.relu(near - far + 0.5).mean() + 0.1 * near.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} triplet {loss.item():.4f} finite {table.space.isfinite().all().item()}")


main()
