# case: squashed-action-atanh
# kind: inf
# phase: forward
# op: aten::atanh
# module: actor
# step: 2
# note: stored actions that were clipped to exactly 1 have an infinite pre-squash value; clamp to 1 - 1e-6
#   before atanh
import torch
from torch import nn
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(3, 2)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, obs, action):
        raw = torch.atanh(action)  # <-- origin
        z = (raw - self.mean(obs)) / self.log_std.exp()
        return -0.5 * z.square().sum(-1) - self.log_std.sum()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = Actor()
        self.critic = nn.Linear(5, 1)

    def forward(self, obs, action):
        return self.actor(obs, action), self.critic(torch.cat([obs, action], -1))


torch.manual_seed(0)
agent = Agent()
opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
for step in range(4):
    obs = torch.randn(8, 3)
    action = Normal(0.0, 0.3).sample((8, 2)).clamp(-0.9, 0.9)
    if step == 2:
        action[5, 0] = 1.0  # the gamepad at its stop
    logp, value = agent(obs, action)
    loss = -logp.mean() + value.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"update {step}: {loss.item():.4f}")
