# case: inverse-distance-scratch
# kind: none
# note: the scratch tensor starts as NaN on purpose and every entry is written before it is read; the
#   running best starts at inf; 1 / distance is inf on the diagonal and overwritten by fill_diagonal_
import torch
import torch.nn as nn


class KernelSmoother(nn.Module):
    """Inverse-distance weights with a trained bandwidth."""

    def __init__(self, points):
        super().__init__()
        self.log_width = nn.Parameter(torch.zeros(()))
        self.value = nn.Parameter(torch.randn(points))
        self.register_buffer("scratch", torch.full((points, points), torch.nan), persistent=False)

    def forward(self, where):
        with torch.no_grad():
            self.scratch.copy_(torch.cdist(where, where, compute_mode="donot_use_mm_for_euclid_dist"))
            inverse = torch.reciprocal(self.scratch)
            inverse.fill_diagonal_(0.0)
        weight = (inverse * self.log_width.exp()).softmax(-1)
        return weight @ self.value


def main():
    torch.manual_seed(0)
    net = KernelSmoother(9)
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    best = torch.tensor(torch.inf)
    for step in range(5):
        where = torch.rand(9, 2)
        loss = (net(where) - where.sum(1)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        best = torch.minimum(best, loss.detach())
        print(f"step {step} loss {loss.item():.4f} best {best.item():.4f}")


main()
