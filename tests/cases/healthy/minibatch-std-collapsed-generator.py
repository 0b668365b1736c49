# case: minibatch-std-collapsed-generator
# kind: none
# note: at step 1 all fakes are equal and torch.std is 0; its backward divides by 0 inside, but masks those
#   entries before it returns: gradients stay finite
import torch
import torch.nn as nn
import torch.nn.functional as F


class MinibatchStd(nn.Module):
    def forward(self, h):
        spread = h.std(dim=0, unbiased=False).mean()
        return torch.cat([h, spread.expand(len(h), 1)], 1)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2))
        self.std = MinibatchStd()
        self.score = nn.Linear(17, 1)

    def forward(self, x):
        return self.score(self.std(self.body(x)))


torch.manual_seed(0)
critic, gen = Critic(), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3)
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3)
for step in range(4):
    z = torch.randn(16, 4)
    if step == 1:
        z = z[:1].expand(16, 4)  # a forgotten re-seed: one latent for the whole batch
    real = torch.randn(16, 2)
    loss_c = F.softplus(critic(gen(z).detach())).mean() + F.softplus(-critic(real)).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    loss_g = F.softplus(-critic(gen(z))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    print(f"step {step} critic {loss_c.item():.4f} generator {loss_g.item():.4f}")
