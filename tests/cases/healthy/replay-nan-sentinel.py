# case: replay-nan-sentinel
# kind: none
# note: unused slots of the replay buffer hold NaN on purpose; only filled slots are sampled, the running
#   average of rewards uses nanmean. Nothing bad reaches the network.
import torch
from torch import nn


class Ring:
    def __init__(self, size, dim):
        self.obs = torch.full((size, dim), float("nan"))
        self.reward = torch.full((size,), float("nan"))
        self.at = self.filled = 0

    def push(self, obs, reward):
        n = len(obs)
        where = (self.at + torch.arange(n)) % len(self.obs)
        self.obs[where], self.reward[where] = obs, reward
        self.at = (self.at + n) % len(self.obs)
        self.filled = min(self.filled + n, len(self.obs))

    def sample(self, n, gen):
        pick = torch.randint(0, self.filled, (n,), generator=gen)
        return self.obs[pick], self.reward[pick]

    def average(self):
        return self.reward.nanmean().item()


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(4)
    ring = Ring(100, 3)
    q = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 1))
    target = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 1))
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=2e-3, amsgrad=True)
    for step in range(8):
        obs = torch.randn(10, 3, generator=gen)
        ring.push(obs, obs[:, 0].sign())
        x, r = ring.sample(16, gen)
        with torch.no_grad():
            goal = r + 0.5 * target(x).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q(x).squeeze(1), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(target.parameters(), q.parameters(), strict=False):
                a.lerp_(b, 0.1)
        print(
            f"step {step} loss {loss.item():.4f} mean reward {ring.average():.3f} "
            f"free {int(ring.reward.isnan().sum())}"
        )


if __name__ == "__main__":
    main()
