# case: critic-clamp-before-backward
# run: python critic-clamp-before-backward.py (exit status 1)
# kind: error
# phase: forward
# op: aten.clamp_
# module: ''
# step: 2
# note: from step 2 on the critic's weights are clamped between its forward and its backward; the graph
#   saved fc2.weight, autograd refuses (version counter). Clamp after the update.
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 20)
        self.fc2 = nn.Linear(20, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def make_generator():
    return nn.Sequential(nn.Linear(2, 20), nn.ReLU(), nn.Linear(20, 3))


def ring(n, gen):
    angle = 6.283 * torch.rand(n, generator=gen)
    return torch.stack([angle.cos(), angle.sin(), 0.1 * torch.randn(n, generator=gen)], 1)


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    critic, maker = Critic(), make_generator()
    opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    opt_m = torch.optim.RMSprop(maker.parameters(), lr=5e-4)
    warmup = 2
    for step in range(5):
        fake = maker(torch.randn(16, 2, generator=gen))
        loss_c = critic(fake.detach()).mean() - critic(ring(16, gen)).mean()
        if step >= warmup:
            with torch.no_grad():
                critic.fc2.weight.clamp_(-0.1, 0.1)  # <-- origin
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

        loss_m = -critic(maker(torch.randn(16, 2, generator=gen))).mean()
        opt_m.zero_grad()
        loss_m.backward()
        opt_m.step()
        print(f"step {step} critic {loss_c.item():.4f} maker {loss_m.item():.4f}")


if __name__ == "__main__":
    main()
