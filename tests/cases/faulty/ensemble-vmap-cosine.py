# case: ensemble-vmap-cosine
# kind: nan
# phase: forward
# op: aten::div
# module: match
# step: 2
# note: an item without features embeds to the zero vector (no biases), and its hand-written cosine is 0 /
#   0 in every member; use F.cosine_similarity, which has an eps
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap


class CosineMatch(nn.Module):
    def forward(self, a, b):
        dot = (a * b).sum(-1)
        length = a.norm(dim=-1) * b.norm(dim=-1)
        return dot / length  # <-- origin


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Sequential(nn.Linear(6, 12, bias=False), nn.Tanh(), nn.Linear(12, 5, bias=False))
        self.item = nn.Linear(8, 5, bias=False)
        self.match = CosineMatch()

    def forward(self, user, item):
        return 5 * self.match(self.user(user), self.item(item))


def main():
    torch.manual_seed(0)
    members = [TwoTower() for _ in range(3)]
    params, buffers = stack_module_state(members)
    skeleton = TwoTower()
    opt = torch.optim.Adam(params.values(), lr=3e-3)

    def one(p, b, user, item):
        return functional_call(skeleton, (p, b), (user, item))

    for step in range(4):
        user, item = torch.randn(16, 6), torch.rand(16, 8)
        click = (user[:, 0] > 0).float()
        if step == 2:
            item[11] = 0.0  # a new item
        logits = vmap(one, in_dims=(0, 0, None, None))(params, buffers, user, item)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, click.expand_as(logits))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} bce {loss.item():.4f}")


if __name__ == "__main__":
    main()
