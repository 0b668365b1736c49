# case: underflowed-probability-log
# kind: inf
# phase: forward
# op: aten::log
# module: ''
# step: 1
# note: softmax of logits 200 apart is exactly 0 and its logarithm -inf; use log_softmax or cross_entropy on
#   the logits
import torch
from torch import nn

torch.manual_seed(6)
judge = nn.Linear(4, 3)
opt = torch.optim.SGD(judge.parameters(), lr=0.5)
stream = [torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 4)]
stream[1][2] = torch.tensor([900.0, -900.0, 900.0, -900.0])
with torch.no_grad():
    wrong = judge(stream[1][2]).argmin()
for i, x in enumerate(stream):
    prob = judge(x).softmax(dim=1)
    pick = torch.full((6,), wrong)
    surprise = -prob.gather(1, pick[:, None]).log()  # <-- origin
    loss = surprise.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"batch {i}: {loss.item():.4f}")
