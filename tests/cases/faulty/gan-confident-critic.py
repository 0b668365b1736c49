# case: gan-confident-critic
# kind: inf
# phase: forward
# op: aten::log
# module: ''
# step: 2
# note: the critic is certain, sigmoid is exactly 0 for the fakes and log(0) is -inf in the generator's loss;
#   use BCEWithLogitsLoss. Two optimizers take one step each per iteration
import torch
from torch import nn

torch.manual_seed(1)
painter = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt_p = torch.optim.Adam(painter.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
for step in range(4):
    real = torch.randn(6, 4) + 2
    fake = painter(torch.randn(6, 2))
    loss_c = bce(critic(real), torch.ones(6, 1)) + bce(critic(fake.detach()), torch.zeros(6, 1))
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    if step == 2:
        with torch.no_grad():
            critic[2].bias -= 200.0  # the critic wins
    belief = torch.sigmoid(critic(fake))
    loss_p = -torch.log(belief).mean()  # <-- origin
    opt_p.zero_grad()
    loss_p.backward()
    opt_p.step()
    print(f"{step} critic {loss_c.item():.3f} painter {loss_p.item():.3f}")
