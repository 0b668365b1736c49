# case: kmeans-min-trackers
# kind: none
# note: nearest distances start at inf and are lowered by minimum, the diagonal of the distance matrix is
#   set to inf before amin, best loss starts at inf: all absorbed.
import math

import torch
from torch import nn


class SoftCodebook(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, dim))

    def forward(self, z):
        nearest = torch.full((z.size(0),), math.inf)
        for code in self.codes:
            nearest = torch.minimum(nearest, (z - code).square().sum(1))
        return nearest

    def spread(self):
        gap = (self.codes.unsqueeze(0) - self.codes.unsqueeze(1)).square().sum(-1)
        gap = gap.masked_fill(torch.eye(len(self.codes), dtype=torch.bool), math.inf)
        return gap.amin(1)


def main():
    torch.manual_seed(0)
    encoder, book = nn.Linear(5, 3), SoftCodebook(6, 3)
    params = [*encoder.parameters(), *book.parameters()]
    opt = torch.optim.SGD(params, lr=0.02, momentum=0.8)
    best, best_at = torch.tensor(math.inf), -1
    floor = torch.full((6,), math.inf)
    for step in range(8):
        x = torch.randn(40, 5)
        fit = book(encoder(x)).mean()
        apart = torch.relu(1.0 - book.spread()).mean()
        loss = fit + 0.1 * apart
        opt.zero_grad()
        loss.backward()
        opt.step()
        floor = torch.minimum(floor, book.spread().detach())
        if loss.detach() < best:
            best, best_at = loss.detach(), step
        print(
            f"step {step} loss {loss.item():.4f} best {best.item():.4f}@{best_at} "
            f"closest {floor.min().item():.4f}"
        )


if __name__ == "__main__":
    main()
