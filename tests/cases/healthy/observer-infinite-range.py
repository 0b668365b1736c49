# case: observer-infinite-range
# kind: none
# note: the buffers of the range observer hold inf and -inf until the first batch replaces them by finite
#   values; fake quantisation starts only after two calibration steps.
import torch
from torch import nn


class RangeObserver(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.tensor(float("inf")))
        self.register_buffer("high", torch.tensor(float("-inf")))

    @torch.no_grad()
    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.amin()))
        self.high.copy_(torch.maximum(self.high, x.amax()))


class QuantLinear(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.lin = nn.Linear(fan_in, fan_out)
        self.seen = RangeObserver()
        self.active = False

    def forward(self, x):
        if self.training:
            self.seen(x)
        if self.active:
            scale = (self.seen.high - self.seen.low).clamp(min=1e-6) / 255
            zero = (-self.seen.low / scale).round()
            q = torch.clamp((x / scale + zero).round(), 0, 255)
            x = x + ((q - zero) * scale - x).detach()
        return self.lin(x)


def main():
    torch.manual_seed(0)
    net = nn.Sequential(QuantLinear(5, 12), nn.ReLU(), QuantLinear(12, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    print("start range", net[0].seen.low.item(), net[0].seen.high.item())
    for step in range(6):
        if step == 2:
            net[0].active = net[2].active = True
        x = torch.randn(32, 5)
        loss = nn.functional.cross_entropy(net(x), (x[:, 0] > x[:, 1]).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(
            f"step {step} loss {loss.item():.4f} "
            f"range {net[0].seen.low.item():.3f} {net[0].seen.high.item():.3f}"
        )


if __name__ == "__main__":
    main()
