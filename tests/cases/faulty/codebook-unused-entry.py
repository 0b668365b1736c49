# case: codebook-unused-entry
# kind: nan
# phase: forward
# op: aten::div
# module: vq
# step: 0
# note: an entry of the codebook that nothing was assigned to is divided by its count of 0
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


class CodebookEMA(nn.Module):
    def __init__(self, entries, dim, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("codebook", torch.randn(entries, dim))
        self.register_buffer("count", torch.zeros(entries))
        self.register_buffer("total", torch.zeros(entries, dim))

    def forward(self, z):
        code = torch.cdist(z.detach(), self.codebook).argmin(dim=-1)
        hard = self.codebook[code]
        if self.training:
            self.update(z.detach(), code)
        commit = F.mse_loss(z, hard)
        return z + (hard - z).detach(), commit

    @torch.no_grad()
    def update(self, z, code):
        onehot = F.one_hot(code, self.count.numel()).to(z.dtype)
        self.count.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(onehot.T @ z, alpha=1 - self.decay)
        self.codebook.copy_(self.total / self.count.unsqueeze(1))  # <-- origin


class VQAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(6, 3)
        self.vq = CodebookEMA(16, 3)
        self.dec = nn.Linear(3, 6)

    def forward(self, x):
        q, commit = self.vq(self.enc(x))
        return self.dec(q), commit


model = VQAutoencoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(20, 6)
    recon, commit = model(x)
    loss = F.mse_loss(recon, x) + 0.25 * commit
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", round(loss.item(), 4))
