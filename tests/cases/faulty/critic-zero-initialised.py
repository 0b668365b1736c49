# case: critic-zero-initialised
# kind: nan
# phase: forward
# op: aten::div
# module:
# step: 0
# note: spectral normalisation divides a weight of zeros by its norm of 0
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(0)


class ResidualCritic(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = spectral_norm(nn.Linear(dim, 16))
        outer = nn.Linear(16, dim)
        nn.init.zeros_(outer.weight)  # the branch starts as the identity
        nn.init.zeros_(outer.bias)
        self.outer = spectral_norm(outer)
        self.score = spectral_norm(nn.Linear(dim, 1))

    def forward(self, x):
        h = F.leaky_relu(self.inner(x), 0.2)
        x = x + self.outer(h)  # <-- origin
        return self.score(x).squeeze(-1)


generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
critic = ResidualCritic(3)
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))

for it in range(3):
    real = torch.randn(16, 3) + 2.0
    with torch.no_grad():
        fake = generator(torch.randn(16, 4))
    loss_c = F.relu(1.0 - critic(real)).mean() + F.relu(1.0 + critic(fake)).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()

    loss_g = -critic(generator(torch.randn(16, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    print(it, "critic", loss_c.item(), "generator", loss_g.item())
