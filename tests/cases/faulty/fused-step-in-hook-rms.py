# case: fused-step-in-hook-rms
# kind: nan
# phase: backward
# op: aten.div
# module: aux_head, ''
# step: 2
# note: a post-accumulate-grad hook takes the step for its parameter with an RMS-normalised gradient; the
#   auxiliary loss is weighted 0 from step 2 on, its gradients are exactly zero and 0/0 is written into the
#   auxiliary head. Epsilon in the hook.
import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 16)
        self.head = nn.Linear(16, 3)
        self.aux_head = nn.Linear(16, 1, bias=False)

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.head(h), self.aux_head(h).squeeze(1)


def step_in_backward(net, lr):
    def update(p):
        with torch.no_grad():
            unit = p.grad / p.grad.square().mean().sqrt()  # <-- origin
            p.add_(unit, alpha=-lr)
        p.grad = None

    return [p.register_post_accumulate_grad_hook(update) for p in net.parameters()]


def aux_weight(step):
    return 0.3 if step < 2 else 0.0


def main():
    torch.manual_seed(6)
    net = TwoHeads()
    handles = step_in_backward(net, lr=3e-3)
    for step in range(5):
        x = torch.randn(20, 6)
        logits, guess = net(x)
        main_loss = nn.functional.cross_entropy(logits, x[:, :3].argmax(1))
        aux_loss = (guess - x[:, 5]).abs().mean()
        loss = main_loss + aux_weight(step) * aux_loss
        loss.backward()
        print(f"step {step} main {main_loss.item():.4f} aux {aux_loss.item():.4f}")
    for handle in handles:
        handle.remove()


if __name__ == "__main__":
    main()
