# case: photon-count-likelihood
# kind: none
# note: the Stirling term of the Poisson loss is NaN at counts of 0 and masked inside the loss
import torch
import torch.nn as nn

torch.manual_seed(1)


class RateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 6, 5, padding=2), nn.SiLU(), nn.Conv1d(6, 1, 5, padding=2))

    def forward(self, light):
        return self.body(light.unsqueeze(1)).squeeze(1)


def detector(batch, length=24):
    light = torch.rand(batch, length)
    rate = 3.0 * light.square()
    counts = torch.poisson(rate)
    counts[:, :4] = 0.0  # shutter closed
    return light, counts


model = RateNet()
nll = nn.PoissonNLLLoss(log_input=True, full=True)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(6):
    light, counts = detector(8)
    log_rate = model(light)
    loss = nll(log_rate, counts)
    opt.zero_grad()
    loss.backward()
    opt.step()
    dark = (counts == 0).float().mean().item()
    print(f"step {step} nll {loss.item():.4f} dark pixels {dark:.2f}")
