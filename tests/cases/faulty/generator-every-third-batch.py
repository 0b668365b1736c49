# case: generator-every-third-batch
# kind: nan
# phase: forward
# op: aten::sqrt
# module: critic, Critic
# step: 4
# note: a hand-written spread E[x^2] - a * E[x]^2 with the wrong factor turns negative; the generator is only
#   updated at every third batch, the fault is at the fifth batch (index 4)
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        spread = torch.sqrt(x.square().mean(0) - 1.05 * x.mean(0).square())  # <-- origin
        return self.fc(x / (spread + 1e-3))


def main():
    torch.manual_seed(2)
    critic, maker = Critic(), nn.Linear(2, 3)
    opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    opt_m = torch.optim.RMSprop(maker.parameters(), lr=1e-3)
    data = torch.randn(7, 10, 3)
    data[4] += 40.0  # an uncentred batch
    for i, real in enumerate(data):
        fake = maker(torch.randn(10, 2))
        opt_c.zero_grad()
        loss_c = critic(fake.detach()).mean() - critic(real).mean()
        loss_c.backward()
        opt_c.step()
        if i % 3 == 0:
            opt_m.zero_grad()
            loss_m = -critic(fake).mean()
            loss_m.backward()
            opt_m.step()
        print(i, loss_c.item())


main()
