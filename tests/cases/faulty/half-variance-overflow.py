# case: half-variance-overflow
# kind: inf
# phase: forward
# op: aten::var
# module: ''
# step: 1
# note: a spread of a few hundred has a variance above 65504, which float16 cannot hold; take the variance in
#   float32
import torch
from torch import nn

torch.manual_seed(4)
encoder = nn.Linear(5, 6).half()
opt = torch.optim.SGD(encoder.parameters(), lr=1e-3)


def decorrelation(z):
    spread = z.var(dim=0)  # <-- origin
    return torch.relu(1.0 - spread).mean() + 1e-3 * spread.mean()


for epoch in range(3):
    views = torch.randn(16, 5).half()
    if epoch == 1:
        views[:8] *= 800  # one half of the batch in other units
    loss = decorrelation(encoder(views)).float()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
