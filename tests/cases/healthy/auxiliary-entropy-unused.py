# case: auxiliary-entropy-unused
# kind: none
# note: the gate is one-hot and its naive entropy is always 0 * -inf = NaN, but the entropy is only a
#   printed diagnostic that no loss takes
import torch
import torch.nn as nn


class HardGate(nn.Module):
    """Straight-through one-hot choice; also reports an entropy."""

    def __init__(self, d, n):
        super().__init__()
        self.proj = nn.Linear(d, n)

    def forward(self, x):
        soft = self.proj(x).softmax(-1)
        hard = torch.zeros_like(soft).scatter(1, soft.argmax(1, keepdim=True), 1.0)
        gate = hard + soft - soft.detach()
        entropy = -(hard * hard.log()).sum(-1)
        return gate, entropy


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = HardGate(6, 3)
        self.branches = nn.ModuleList(nn.Linear(6, 4) for _ in range(3))

    def forward(self, x):
        gate, entropy = self.gate(x)
        y = torch.stack([b(x) for b in self.branches], 1)
        return (gate[..., None] * y).sum(1), {"entropy": entropy}


torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    x, y = torch.randn(12, 6), torch.randint(0, 4, (12,))
    logits, info = net(x)
    loss = nn.functional.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", round(loss.item(), 4), "entropy", info["entropy"].nanmean().item())
