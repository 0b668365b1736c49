# case: pruned-row-renormalised
# kind: nan
# phase: optimizer
# op: aten.div, aten.div_
# module: proxies
# step: 3
# note: a step post-hook projects every row of the proxy matrix to unit length; at step 3 pruning zeroed
#   one row, whose projection is 0/0. Clamp the norm. The projection's result is written to the weights in
#   the same line.
import torch
from torch import nn
from torch.nn import functional as F


class ProxyClassifier(nn.Module):
    def __init__(self, dim=8, classes=5):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(10, 16), nn.LeakyReLU(0.1), nn.Linear(16, dim))
        self.proxies = nn.Linear(dim, classes, bias=False)

    def forward(self, x):
        return self.proxies(F.normalize(self.embed(x), dim=1, eps=1e-6))


def prune_rows(weight, keep):
    with torch.no_grad():
        strength = weight.abs().sum(1)
        weight[strength.argsort()[: len(strength) - keep]] = 0.0


def attach_projection(opt, weight):
    def project(optimizer, args, kwargs):
        with torch.no_grad():
            length = weight.norm(dim=1, keepdim=True)
            weight.div_(length)  # <-- origin

    return opt.register_step_post_hook(project)


def main():
    torch.manual_seed(1)
    net = ProxyClassifier()
    opt = torch.optim.SGD(
        [
            {"params": net.embed.parameters(), "weight_decay": 1e-4},
            {
                "params": net.proxies.parameters(),
                "lr": 0.0,
            },  # proxies stay fixed, only the projection touches them
        ],
        lr=0.05,
    )
    attach_projection(opt, net.proxies.weight)
    for step in range(6):
        x = torch.randn(40, 10)
        loss = F.cross_entropy(8.0 * net(x), torch.randint(0, 4, (40,)))
        opt.zero_grad()
        loss.backward()
        if step == 3:
            prune_rows(net.proxies.weight, keep=4)
        opt.step()
        print(f"step {step} loss {loss.item():.4f} proxy norm {net.proxies.weight.norm().item():.3f}")


if __name__ == "__main__":
    main()
