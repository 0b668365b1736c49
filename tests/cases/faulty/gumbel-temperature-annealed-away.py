# case: gumbel-temperature-annealed-away
# kind: inf
# phase: forward
# op: aten::div
# module: codebook
# step: 4
# note: the linear schedule ends at tau = 0, (logits + noise) / 0 is +-inf and softmax of +inf is NaN; keep
#   a minimum temperature
import torch
import torch.nn as nn
import torch.nn.functional as F


class GumbelCodebook(nn.Module):
    def __init__(self, d, codes, warm=4):
        super().__init__()
        self.to_logits = nn.Linear(d, codes)
        self.codes = nn.Parameter(torch.randn(codes, d))
        self.warm, self.seen = warm, 0

    @property
    def tau(self):
        return max(0.0, 1.0 - self.seen / self.warm)

    def forward(self, h):
        pick = F.gumbel_softmax(self.to_logits(h), tau=self.tau, dim=-1)  # <-- origin
        if self.training:
            self.seen += 1
        return pick @ self.codes


class DiscreteAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(10, 6)
        self.codebook = GumbelCodebook(6, 16)
        self.dec = nn.Linear(6, 10)

    def forward(self, x):
        return self.dec(self.codebook(torch.tanh(self.enc(x))))


torch.manual_seed(1)
model = DiscreteAE()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
data = torch.randn(6, 32, 10)
for step, x in enumerate(data):
    tau = model.codebook.tau
    loss = F.mse_loss(model(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} tau {tau:.2f} recon {loss.item():.4f}")
