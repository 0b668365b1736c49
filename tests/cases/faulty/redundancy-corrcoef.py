# case: redundancy-corrcoef
# kind: nan
# phase: forward
# op: aten::div, aten::true_divide, aten::corrcoef
# module: ''
# step: 2
# note: a code that is constant over the batch has no correlation
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 5), nn.ReLU())

    def forward(self, x):
        return self.body(x)


def redundancy(codes):
    """Off-diagonal correlation between code units."""
    table = torch.corrcoef(codes.T)  # <-- origin
    off = table - torch.diag(torch.diagonal(table))
    return off.square().mean()


encoder, decoder = Encoder(), nn.Linear(5, 6)
with torch.no_grad():
    encoder.body[2].bias.fill_(0.5)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for step in range(4):
    x = torch.randn(24, 6)
    if step == 2:
        x = x[:1].expand(24, 6)  # the shard holds one sample over and over
        x = x.contiguous()
    z = encoder(x)
    recon = F.mse_loss(decoder(z), x)
    loss = recon + 0.2 * redundancy(z)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, "recon", round(recon.item(), 4), "loss", round(loss.item(), 4))
