# case: lbfgs-closure-leaves-domain
# kind: nan
# phase: forward
# op: aten::log
# module: Tank
# step: 1
# note: the second step of L-BFGS without a line search overshoots to a negative volume, and the closure takes
#   its log; use line_search_fn="strong_wolfe" or optimise the log-volume
import torch
from torch import nn


class Tank(nn.Module):
    def __init__(self):
        super().__init__()
        self.volume = nn.Parameter(torch.tensor([4.0, 3.0]))

    def forward(self, demand):
        cost = self.volume - demand * torch.log(self.volume)  # <-- origin
        return cost.sum()


tank = Tank()
opt = torch.optim.LBFGS(tank.parameters(), lr=0.5, max_iter=2)
for step, demand in enumerate(torch.tensor([[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]])):
    if step == 1:
        opt.param_groups[0]["lr"] = 30.0  # "speed it up"

    def closure(demand=demand):
        opt.zero_grad()
        loss = tank(demand)
        loss.backward()
        return loss

    print(step, opt.step(closure).item(), tank.volume.tolist())
