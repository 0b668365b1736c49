# case: jvp-sliced-score-norm
# kind: nan
# phase: forward
# op: aten::div, aten::sqrt
# module: radius
# step: 1
# note: the tangent of sqrt is t / (2 sqrt(r)), and a sample exactly at the mode has r = 0; the primal
#   value is fine, the tangent is 0 / 0; add eps inside the sqrt
import torch
from torch import nn
from torch.func import jvp


class Radius(nn.Module):
    def forward(self, x):
        r2 = (x * x).sum(-1, keepdim=True)
        return torch.sqrt(r2)  # <-- origin


class Score(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.radius = Radius()
        self.net = nn.Sequential(nn.Linear(d + 1, 32), nn.Softplus(), nn.Linear(32, d))

    def forward(self, x):
        return self.net(torch.cat([x, self.radius(x)], -1))


def sliced_score_matching(score, x):
    v = torch.randn_like(x)
    s, jv = jvp(score, (x,), (v,))
    return ((v * jv).sum(-1) + 0.5 * (v * s).sum(-1).square()).mean()


def main():
    torch.manual_seed(0)
    score = Score()
    opt = torch.optim.Adam(score.parameters(), lr=1e-3)
    for step in range(3):
        x = torch.randn(32, 4)
        if step == 1:
            x[9] = 0.0
        loss = sliced_score_matching(score, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} ssm {loss.item():.4f}")


main()
