# case: center-loss-running-update
# run: python center-loss-running-update.py (exit status 1)
# kind: error
# phase: forward
# op: aten::lerp_
# module: CenterLoss
# step: 3
# note: every fourth call refreshes the centres in place, but the matrix product of the same forward has
#   kept them for backward; update after backward, or use a clone in the product
import torch
import torch.nn as nn


class CenterLoss(nn.Module):
    def __init__(self, classes, dim, every=4):
        super().__init__()
        self.register_buffer("centers", torch.randn(classes, dim))
        self.every, self.calls = every, 0

    @torch.no_grad()
    def refresh(self, feats, labels):
        for c in labels.unique():
            mean = feats[labels == c].mean(0)
            self.centers[c].lerp_(mean, 0.5)  # <-- origin

    def forward(self, feats, labels):
        self.calls += 1
        scores = feats @ self.centers.t()
        pull = (
            feats.square().sum(1)
            + self.centers.square().sum(1)[labels]
            - 2 * scores.gather(1, labels[:, None]).squeeze(1)
        ).mean()
        if self.calls % self.every == 0:
            self.refresh(feats.detach(), labels)
        return pull


torch.manual_seed(12)
embed = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5))
criterion = CenterLoss(3, 5)
opt = torch.optim.SGD(embed.parameters(), lr=1e-2)
for step in range(6):
    x = torch.randn(12, 6)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    loss = criterion(embed(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} pull {loss.item():.4f}", flush=True)
