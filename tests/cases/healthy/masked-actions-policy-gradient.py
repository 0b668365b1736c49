# case: masked-actions-policy-gradient
# kind: none
# note: illegal actions have -inf logits in rollouts under no_grad and in the update; Categorical's log_prob
#   of legal actions and entropy stay finite
import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 5))

    def forward(self, obs, legal):
        return Categorical(logits=self.fc(obs).masked_fill(~legal, -torch.inf))


torch.manual_seed(0)
policy = Policy()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for step in range(4):
    with torch.no_grad():
        obs = torch.randn(16, 4)
        legal = torch.rand(16, 5) < 0.6
        legal[:, 0] = True
        action = policy(obs, legal).sample()
        reward = (action == 0).float() - 0.1 * action
        old = policy(obs, legal).log_prob(action)
    now = policy(obs, legal)
    ratio = (now.log_prob(action) - old).exp()
    gain = torch.minimum(ratio * reward, ratio.clamp(0.8, 1.2) * reward)
    loss = -(gain + 0.01 * now.entropy()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.4f}", reward.mean().item())
