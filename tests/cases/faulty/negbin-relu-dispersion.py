# case: negbin-relu-dispersion
# kind: inf
# phase: forward
# op: aten::lgamma
# module: ''
# step: 1
# note: the dispersion theta ends in a ReLU and is exactly 0 for some genes; lgamma(0) is inf (and inf -
#   inf NaN where the count is 0 as well); use softplus plus a floor
import torch
from torch import nn, optim


class CountAE(nn.Module):
    def __init__(self, genes, latent=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(genes, 16), nn.ReLU(), nn.Linear(16, latent))
        self.mean = nn.Linear(latent, genes)
        self.disp = nn.Linear(latent, genes)

    def forward(self, counts):
        z = self.enc(torch.log1p(counts))
        return self.mean(z).exp(), torch.relu(self.disp(z) + 2.0)


def nb_nll(x, mu, theta):
    eps = 1e-8
    t0 = torch.lgamma(theta)  # <-- origin
    t1 = torch.lgamma(x + theta + eps) - t0 - torch.lgamma(x + 1)
    t2 = theta * (torch.log(theta + eps) - torch.log(theta + mu + eps))
    t3 = x * (torch.log(mu + eps) - torch.log(theta + mu + eps))
    return -(t1 + t2 + t3).mean()


torch.manual_seed(4)
model = CountAE(20)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
depth = [1.0, 40.0, 1.0]
cells = torch.poisson(torch.rand(3, 12, 20) * 4)
for epoch in range(3):
    batch = cells[epoch] * depth[epoch] ** 2  # the second run was sequenced much deeper
    mu, theta = model(batch / depth[epoch] if epoch == 0 else batch)
    nll = nb_nll(batch, mu.clamp(max=1e4), theta)
    optimizer.zero_grad()
    nll.backward()
    optimizer.step()
    print(f"epoch {epoch} nll {nll.item():.3f}")
