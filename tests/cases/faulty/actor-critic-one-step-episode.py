# case: actor-critic-one-step-episode
# kind: nan
# phase: forward
# op: aten.std
# module: ''
# step: 2
# note: returns are normalised per episode; an episode of one step has std with n - 1 = 0, NaN, and both
#   optimizers write NaN. Use unbiased=False plus an epsilon, or skip episodes of length 1.
import torch
from torch import nn
from torch.distributions import Categorical


class Corridor:
    """Walk right to win; episode 2 starts next to the exit."""

    def __init__(self, starts):
        self.starts = iter(starts)

    def reset(self):
        self.at = next(self.starts)
        return self.obs()

    def obs(self):
        return torch.tensor([self.at / 5.0, 1.0])

    def step(self, action):
        self.at += 1 if action == 1 else -1
        done = self.at in (-1, 5)
        return self.obs(), (1.0 if self.at == 5 else -0.05), done


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


def discounted(rewards, gamma=0.97):
    out, running = [], 0.0
    for r in reversed(rewards):
        running = r + gamma * running
        out.insert(0, running)
    return torch.tensor(out)


def play(env, agent, limit=30):
    obs, logps, values, rewards = env.reset(), [], [], []
    for _ in range(limit):
        policy, value = agent(obs)
        action = policy.sample()
        if env.at == 4:
            action = torch.tensor(1)
        obs, reward, done = env.step(action.item())
        logps.append(policy.log_prob(action))
        values.append(value)
        rewards.append(reward)
        if done:
            break
    return torch.stack(logps), torch.stack(values), discounted(rewards)


def main():
    torch.manual_seed(0)
    env, agent = Corridor([2, 2, 4, 2, 2]), Agent()
    opt_a = torch.optim.Adam(agent.actor.parameters(), lr=3e-3)
    opt_c = torch.optim.Adam(agent.critic.parameters(), lr=1e-2)
    for step in range(4):
        try:
            logps, values, returns = play(env, agent)
        except ValueError as err:  # Categorical refuses NaN logits
            print(f"step {step} stopped: {str(err).splitlines()[0][:60]}")
            break
        gap = returns - values.detach()
        advantage = (gap - gap.mean()) / (gap.std() + 1e-8)  # <-- origin
        loss_a = -(logps * advantage).mean()
        loss_c = (values - returns).square().mean()
        opt_a.zero_grad(), opt_c.zero_grad()
        (loss_a + 0.5 * loss_c).backward()
        opt_a.step(), opt_c.step()
        print(f"step {step} length {len(returns)} actor {loss_a.item():.4f} critic {loss_c.item():.4f}")


if __name__ == "__main__":
    main()
