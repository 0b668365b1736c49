# case: evidence-digamma
# kind: inf
# phase: forward
# op: aten::digamma
# module: ''
# step: 0
# note: digamma has a pole at 0, where the evidence of a class ends up
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Evidence(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x):
        return torch.relu(self.layers(x))


def evidential_loss(alpha, target):
    strength = alpha.sum(dim=-1, keepdim=True)
    total = torch.digamma(strength + 1e-3)
    each = torch.digamma(alpha)  # <-- origin
    onehot = F.one_hot(target, alpha.size(-1)).to(alpha.dtype)
    return (onehot * (total - each)).sum(-1).mean()


model = Evidence(7, 4)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
data = torch.randn(48, 7)
label = torch.randint(0, 4, (48,))
for epoch in range(3):
    for part in torch.arange(48).split(16):
        evidence = model(data[part])
        loss = evidential_loss(evidence, label[part])  # Dirichlet parameters
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    sched.step()
