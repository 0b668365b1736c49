# case: list-with-missing-target
# kind: nan
# phase: input
# op:
# module:
# step: 2
# note: one measured target of the third experiment is missing and was written as NaN; mask missing targets in
#   the loss. The line that uses the batch is accepted too
import torch
from torch import nn

EXPERIMENTS = [
    ([0.1, 0.4, 0.9], [1.0, 1.4, 1.7]),
    ([0.2, 0.3, 0.5], [1.1, 1.2, 1.5]),
    ([0.6, 0.7, 0.8], [1.5, float("nan"), 1.6]),
    ([0.0, 0.5, 1.0], [0.9, 1.5, 1.8]),
]

torch.manual_seed(1)
fit = nn.Sequential(nn.Linear(1, 5), nn.Sigmoid(), nn.Linear(5, 1))
opt = torch.optim.Adam(fit.parameters(), lr=1e-2)
for number, (dose, answer) in enumerate(EXPERIMENTS):
    x = torch.tensor(dose)[:, None]
    y = torch.tensor(answer)[:, None]  # <-- origin
    loss = nn.functional.mse_loss(fit(x), y)  # <-- seen
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(number, loss.item())
