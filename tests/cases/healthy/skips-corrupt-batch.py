# case: skips-corrupt-batch
# kind: none
# note: two samples of the data set are corrupt (NaN pixel, inf target); their batches give a bad loss,
#   which is dropped before backward, and the model has no state that a forward could spoil. Everything
#   after it is healthy.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class PatchMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv1d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.mix(x))).mean(2)).squeeze(1)


def corrupt_data():
    gen = torch.Generator().manual_seed(6)
    x = torch.randn(56, 3, 10, generator=gen)
    y = x[:, 0].mean(1)
    x[17, 1, 4] = float("nan")
    y[41] = float("inf")
    return TensorDataset(x, y)


def train(net, loader, opt):
    stats = {"taken": 0, "dropped": 0}
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(net(x), y)
        if not torch.isfinite(loss):
            stats["dropped"] += 1
            print(f"step {step} dropped a corrupt batch")
            continue
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        stats["taken"] += 1
        print(f"step {step} loss {loss.item():.4f}")
    return stats


def main():
    torch.manual_seed(0)
    net = PatchMixer()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    stats = train(net, DataLoader(corrupt_data(), batch_size=8), opt)
    print(stats, "weights finite", all(bool(p.isfinite().all()) for p in net.parameters()))


if __name__ == "__main__":
    main()
