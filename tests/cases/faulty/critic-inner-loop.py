# case: critic-inner-loop
# kind: inf
# phase: forward
# op: aten::exp
# module: ''
# step: 2
# note: exp of a critic score of 120 overflows in the second of three critic updates of the third iteration;
#   the critic takes three steps per iteration and the generator one; use softplus or logsumexp
import torch
from torch import nn


def samples(n, shift=0.0):
    return torch.randn(n, 2) + shift


torch.manual_seed(3)
source = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
witness = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 1))
opt_s = torch.optim.SGD(source.parameters(), lr=1e-2)
opt_w = torch.optim.SGD(witness.parameters(), lr=1e-2)
for step in range(4):
    for inner in range(3):
        real = samples(8, 1.0)
        if step == 2 and inner == 1:
            real *= 2000.0
            real[:, 0].neg_()
        gain = witness(real).abs().mean()
        bound = torch.exp(witness(real).abs()).mean() - 1  # <-- origin
        loss_w = bound - gain + witness(source(samples(8)).detach()).mean()
        opt_w.zero_grad()
        loss_w.backward()
        opt_w.step()
    loss_s = -witness(source(samples(8))).mean()
    opt_s.zero_grad()
    loss_s.backward()
    opt_s.step()
    print("step", step, "witness", loss_w.item(), "source", loss_s.item())
