# case: two-views-running-scale
# kind: error
# phase: forward
# op: aten.lerp_
# module: encoder.scale
# step: 0
# note: the running scale is updated in place in every forward and used in a product; the second view's
#   forward changes the buffer that the first view's graph saved. Update a clone (or use the scale before
#   it is updated, detached and cloned). The script reports the error and goes on without training.
import torch
from torch import nn
from torch.nn import functional as F


class RunningScale(nn.Module):
    def __init__(self, dim, rate=0.1):
        super().__init__()
        self.rate = rate
        self.register_buffer("inverse", torch.ones(dim))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.inverse.lerp_(1.0 / (x.std(0) + 0.1), self.rate)  # <-- origin
        return x * self.inverse


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 10)
        self.scale = RunningScale(10)
        self.out = nn.Linear(10, 4)

    def forward(self, x):
        return self.out(torch.relu(self.scale(self.fc(x))))


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.predictor = nn.Linear(4, 4)

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        return (
            -F.cosine_similarity(self.predictor(za), zb.detach()).mean()
            - F.cosine_similarity(self.predictor(zb), za.detach()).mean()
        )


def main():
    torch.manual_seed(0)
    net = Siamese()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    lost = 0
    for step in range(3):
        base = torch.randn(16, 6)
        loss = net(base + 0.1 * torch.randn(16, 6), base + 0.1 * torch.randn(16, 6))
        opt.zero_grad()
        try:
            loss.backward()
        except RuntimeError as err:
            lost += 1
            print(f"step {step} backward failed: {str(err)[:58]}...")
            continue
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")
    print("batches lost", lost)


if __name__ == "__main__":
    main()
