# case: inference-mode-zscore
# kind: nan
# phase: forward
# op: aten::std
# module: zscore
# step: 2, 3
# note: the demo after training sends a single sample, whose unbiased std over the batch is NaN; training
#   never sees that. Keep running statistics for evaluation
import torch
from torch import nn


class ZScore(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1e-4)  # <-- origin


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.zscore = ZScore()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.zscore(x))


torch.manual_seed(7)
net = Scorer()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(12, 4)), torch.randint(0, 2, (12,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))

net.eval()
with torch.inference_mode():
    answer = net(torch.randn(1, 4)).softmax(1)
print("demo", answer.tolist())
