# case: replay-priority-zero
# kind: nan
# phase: input
# op: torch.from_numpy, torch.as_tensor, aten.from_numpy, aten.lift_fresh, aten.detach, aten._to_copy
# module: ''
# step: 3
# note: importance weights (N p)**-beta of a transition whose priority fell to 0 are inf, divided by their
#   maximum inf/inf = NaN; numpy makes them, torch receives them in as_tensor. Add an epsilon to the
#   priorities.
import numpy as np
import torch
from torch import nn


class PrioritisedReplay:
    def __init__(self, size, alpha=0.6, beta=0.4, seed=0):
        self.rng = np.random.default_rng(seed)
        self.obs = self.rng.standard_normal((size, 4)).astype(np.float32)
        self.reward = (self.obs[:, :1] > 0).astype(np.float32)
        self.prio = np.ones(size)
        self.alpha, self.beta = alpha, beta

    def sample(self, n):
        # half by priority, half round-robin, so that nothing starves
        scaled = self.prio**self.alpha
        p = scaled / scaled.sum()
        by_prio = self.rng.choice(len(p), n // 2, p=p)
        rest = self.rng.choice(len(p), n - n // 2, replace=False)
        idx = np.concatenate([by_prio, rest])
        weights = (len(p) * p[idx]) ** -self.beta
        weights = weights / weights.max()  # <-- cause
        return idx, weights.astype(np.float32)

    def update(self, idx, td):
        self.prio[idx] = np.minimum(np.abs(td), 1.0)


def main():
    np.seterr(all="ignore")
    torch.manual_seed(0)
    memory = PrioritisedReplay(48)
    q = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
    opt = torch.optim.RMSprop(q.parameters(), lr=1e-3)
    for step in range(6):
        if step == 3:
            memory.update(
                np.arange(0, 48, 2), np.zeros(24)
            )  # terminal states: their error is known to be zero
        idx, weights = memory.sample(32)
        x = torch.as_tensor(memory.obs[idx])
        r = torch.as_tensor(memory.reward[idx])
        w = torch.as_tensor(weights)  # <-- origin
        td = r - q(x)
        loss = (w.unsqueeze(1) * td.square()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f} max priority {np.nanmax(memory.prio):.3f}")
        if np.isfinite(loss.item()):
            memory.update(idx, td.detach().numpy()[:, 0] + 1e-3)


if __name__ == "__main__":
    main()
