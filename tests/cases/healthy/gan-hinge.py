# case: gan-hinge
# kind: none
# note: a small GAN with hinge losses, spectral norm and two critic updates per generator update; the critic
#   saturates, nothing is bad
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(3)
source = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
critic = nn.Sequential(spectral_norm(nn.Linear(2, 8)), nn.LeakyReLU(0.1), spectral_norm(nn.Linear(8, 1)))
opt_s = torch.optim.Adam(source.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
for step in range(4):
    for _ in range(2):
        real = torch.randn(12, 2) * 0.1 + torch.tensor([30.0, -30.0])
        fake = source(torch.randn(12, 2)).detach()
        loss_c = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake)).mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    loss_s = -critic(source(torch.randn(12, 2))).mean()
    opt_s.zero_grad()
    loss_s.backward()
    opt_s.step()
    print(f"{step} {loss_c.item():.4f} {loss_s.item():.4f}")
