# case: rollout-hidden-reset
# run: python rollout-hidden-reset.py (exit status 1)
# kind: error
# phase: forward
# op: aten.index_put_, aten._index_put_impl_
# module: ''
# step: 2
# note: the first time an environment finishes (third rollout) its hidden state is zeroed in place, but the
#   tanh of the RNN cell saved that tensor as its own result; torch.where or multiplication by a mask makes
#   a new tensor.
import torch
from torch import nn


class Envs:
    """Four counters; one of them finishes in the third rollout."""

    def __init__(self, n=4):
        self.n, self.clock = n, 0
        self.gen = torch.Generator().manual_seed(3)

    def step(self):
        self.clock += 1
        obs = torch.randn(self.n, 3, generator=self.gen)
        done = torch.zeros(self.n, dtype=torch.bool)
        if self.clock % 13 == 0:
            done[1] = True
        return obs, done


class RecurrentPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(3 + 8, 8)
        self.value = nn.Linear(8, 1)

    def forward(self, obs, h):
        h = torch.tanh(self.w(torch.cat([obs, h], 1)))
        return self.value(h).squeeze(1), h


def rollout(policy, envs, h, length=5):
    values, targets = [], []
    for _ in range(length):
        obs, done = envs.step()
        value, h = policy(obs, h)
        values.append(value)
        targets.append(obs.sum(1))
        if done.any():
            h[done] = 0.0  # <-- origin
    return torch.stack(values), torch.stack(targets), h


def main():
    torch.manual_seed(0)
    policy, envs = RecurrentPolicy(), Envs()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    h = torch.zeros(envs.n, 8)
    for step in range(4):
        values, targets, h = rollout(policy, envs, h.detach())
        loss = (values - targets).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"rollout {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
