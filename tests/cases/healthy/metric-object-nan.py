# case: metric-object-nan
# kind: none
# note: a metric object (a Module with counters) returns 0/0 for a class that has not occurred, and a
#   correlation of a constant is NaN; both are only printed
import torch
from torch import nn


class Recall(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("hit", torch.zeros(classes))
        self.register_buffer("total", torch.zeros(classes))

    @torch.no_grad()
    def update(self, logits, y):
        for c in range(len(self.total)):
            self.hit[c] += ((logits.argmax(1) == c) & (y == c)).sum()
            self.total[c] += (y == c).sum()

    def compute(self):
        return self.hit / self.total


torch.manual_seed(3)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
recall = Recall(3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    x = torch.randn(6, 4)
    y = (x[:, 0] > 0).long() if step < 3 else (x[:, 0] > 0).long() * 2
    out = net(x)
    loss = nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    recall.update(out, y)
    with torch.no_grad():
        constant = torch.ones(6)
        correlation = torch.corrcoef(torch.stack([out[:, 0], constant]))[0, 1]
    print(step, f"{loss.item():.4f}", recall.compute().tolist(), correlation.item())
