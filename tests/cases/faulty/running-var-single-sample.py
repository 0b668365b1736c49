# case: running-var-single-sample
# kind: nan
# phase: forward
# op: aten.var
# module: body.norm
# step: 4
# note: the last batch of the epoch holds one row; the layer normalises with the biased variance (0, fine)
#   but tracks the unbiased one, whose n - 1 = 0 makes NaN in the buffer: training goes on, only eval() is
#   NaN. drop_last=True or track the biased variance.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class StreamNorm(nn.Module):
    def __init__(self, dim, momentum=0.2):
        super().__init__()
        self.momentum = momentum
        self.gain = nn.Parameter(torch.ones(dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))

    def forward(self, x):
        if not self.training:
            return self.gain * (x - self.mean) / torch.sqrt(self.var + 1e-5)
        mu = x.mean(0)
        spread = x.var(0, unbiased=False)
        with torch.no_grad():
            self.mean.lerp_(mu, self.momentum)
            self.var.lerp_(x.var(0), self.momentum)  # <-- origin
        return self.gain * (x - mu) / torch.sqrt(spread + 1e-5)


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 10)
        self.norm = StreamNorm(10)

    def forward(self, x):
        return torch.relu(self.norm(self.fc(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()
        self.head = nn.Linear(10, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


def main():
    torch.manual_seed(3)
    x = torch.randn(33, 6)
    y = x[:, 0] - 2 * x[:, 3]
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    net = Model()
    opt = torch.optim.Adam(net.parameters(), lr=0.02)
    step = 0
    for epoch in range(2):
        net.train()
        for bx, by in loader:
            loss = nn.functional.mse_loss(net(bx), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} step {step} rows {len(bx)} loss {loss.item():.4f}")
            step += 1
    net.eval()
    with torch.no_grad():
        print(f"validation {nn.functional.mse_loss(net(x), y).item():.4f}")


if __name__ == "__main__":
    main()
