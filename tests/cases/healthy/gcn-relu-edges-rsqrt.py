# case: gcn-relu-edges-rsqrt
# kind: none
# note: rsqrt of a zero degree is inf and its gradient NaN, but the degree is 0 only where every edge score
#   is on the flat side of the ReLU, whose backward selects 0 there: loss, gradients and parameters stay
#   finite
import torch
import torch.nn as nn
import torch.nn.functional as F


class EdgeScorer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.bil = nn.Bilinear(d, d, 1)

    def forward(self, x, src, dst):
        return torch.relu(self.bil(x[src], x[dst]).squeeze(-1) + 0.5)


class GCNLayer(nn.Module):
    def __init__(self, d, out):
        super().__init__()
        self.lin = nn.Linear(d, out)

    def forward(self, x, src, dst, w):
        n = x.shape[0]
        deg = torch.zeros(n).index_add(0, dst, w)
        inv = torch.rsqrt(deg)
        inv = inv.clamp(max=1e3)
        norm = inv[src] * w * inv[dst]
        return torch.zeros(n, self.lin.out_features).index_add(0, dst, norm[:, None] * self.lin(x)[src])


class GraphNet(nn.Module):
    def __init__(self, d=5, classes=3):
        super().__init__()
        self.edges = EdgeScorer(d)
        self.gcn = GCNLayer(d, classes)

    def forward(self, x, src, dst):
        return self.gcn(x, src, dst, self.edges(x, src, dst))


def ring(n):
    a = torch.arange(n)
    return torch.cat([a, (a + 1) % n]), torch.cat([(a + 1) % n, a])


torch.manual_seed(14)
net = GraphNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
src, dst = ring(10)
for epoch in range(3):
    x = torch.randn(10, 5) * (0.3 if epoch == 0 else 1.5)
    y = torch.randint(0, 3, (10,))
    loss = F.cross_entropy(net(x, src, dst), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
