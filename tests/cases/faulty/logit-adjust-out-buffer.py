# case: logit-adjust-out-buffer
# kind: inf
# phase: forward
# op: aten::log
# module: AdjustedCrossEntropy
# step: 2
# note: the prior buffer is refilled with torch.log(..., out=) from the labels of the last window; a class
#   unseen in the window gets log 0 = -inf in the buffer, and the batch that holds that class has loss inf;
#   smooth the counts
import collections

import torch
import torch.nn as nn


class AdjustedCrossEntropy(nn.Module):
    """Logits are shifted by the log frequency of the classes in the last window."""

    def __init__(self, classes, refresh=2):
        super().__init__()
        self.register_buffer("log_prior", torch.zeros(classes))
        self.window = collections.deque(maxlen=2)
        self.refresh, self.calls = refresh, 0

    def forward(self, logits, target):
        if self.calls and self.calls % self.refresh == 0:
            share = torch.cat(list(self.window)).bincount(minlength=len(self.log_prior)).float()
            share /= share.sum()
            torch.log(share, out=self.log_prior)  # <-- origin
        self.calls += 1
        self.window.append(target)
        return nn.functional.cross_entropy(logits + self.log_prior, target)


torch.manual_seed(2)
model = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 5))
criterion = AdjustedCrossEntropy(5)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(5):
    x = torch.randn(16, 6)
    y = torch.randint(0, 4 if step < 2 else 5, (16,))  # the rare class shows up late
    loss = criterion(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}")
