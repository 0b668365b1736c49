# case: f1-empty-class
# kind: nan
# phase: forward
# op: aten::div
# module: ''
# step: 3
# note: soft F1 of a class that is neither predicted (exact zeros after ReLU) nor present is 0/0; add eps to
#   both sides
import torch
from torch import nn


def soft_f1(score, truth):
    hits = (score * truth).sum(0)
    return 2 * hits / (score.sum(0) + truth.sum(0))  # <-- origin


def train():
    torch.manual_seed(5)
    tagger = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Hardtanh(0.0, 1.0))
    opt = torch.optim.Adam(tagger.parameters(), lr=1e-3)
    for step in range(5):
        x = torch.rand(8, 6)
        truth = (torch.rand(8, 4) > 0.4).float()
        if step == 3:
            with torch.no_grad():
                tagger[0].bias[2] = -40.0  # this class was pruned, and its labels with it
            truth[:, 2] = 0.0
        loss = 1 - soft_f1(tagger(x), truth).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("step", step, "1-F1", loss.item())


if __name__ == "__main__":
    train()
