# case: ppo-beta-clipped-action
# kind: inf
# phase: forward
# op: aten::xlogy
# module: ''
# step: 2
# note: a stored action was clipped to exactly 0, which the Beta support accepts, and the log-density is (a
#   - 1) log 0 = -inf; clip actions to [1e-5, 1 - 1e-5]
import torch
import torch.nn as nn
from torch.distributions import Beta

torch.manual_seed(0)


class BetaPolicy(nn.Module):
    def __init__(self, obs=4, act=2):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(obs, 32), nn.Tanh())
        self.alpha = nn.Linear(32, act)
        self.beta = nn.Linear(32, act)

    def forward(self, obs):
        h = self.base(obs)
        return Beta(1 + nn.functional.softplus(self.alpha(h)), 1 + nn.functional.softplus(self.beta(h)))


policy = BetaPolicy()
opt = torch.optim.Adam(policy.parameters(), lr=3e-3)

# rollout
obs = torch.randn(48, 4)
with torch.no_grad():
    dist = policy(obs)
    action = dist.sample()
    old_logp = dist.log_prob(action).sum(-1)
advantage = torch.randn(48)
# the environment's wrapper rounded two commands to the end of the range
action[37, 1] = 0.0

for update, rows in enumerate(torch.arange(48).split(16)):
    new = policy(obs[rows])
    logp = new.log_prob(action[rows])  # <-- origin
    ratio = (logp.sum(-1) - old_logp[rows]).exp()
    adv = advantage[rows]
    surrogate = torch.minimum(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    loss = -surrogate - 0.01 * new.entropy().mean() - 0.001 * logp.mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    opt.step()
    print(f"update {update} loss {loss.item():+.4f}")
