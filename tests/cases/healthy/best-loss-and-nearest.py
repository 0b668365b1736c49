# case: best-loss-and-nearest
# kind: none
# note: the best loss starts at inf, a tensor of best losses too, and distances to missing codes are padded
#   with inf before an argmin
import torch
from torch import nn

torch.manual_seed(1)
encoder = nn.Linear(5, 3)
codes = torch.randn(6, 3)
missing = torch.tensor([False, False, True, False, False, True])
opt = torch.optim.SGD(encoder.parameters(), lr=0.05)
best, patience = float("inf"), 0
best_per_group = torch.full((2,), torch.inf)
for epoch in range(6):
    x = torch.randn(8, 5)
    z = encoder(x)
    far = torch.cdist(z, codes).masked_fill(missing, torch.inf)
    nearest = far.argmin(dim=1)
    each = (z - codes[nearest]).square().sum(1)
    loss = each.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    groups = each.detach().view(2, 4).mean(1)
    best_per_group = torch.where(groups < best_per_group, groups, best_per_group)
    best, patience = (loss.item(), 0) if loss.item() < best else (best, patience + 1)
    print(epoch, f"{best:.4f}", patience, best_per_group.tolist())
