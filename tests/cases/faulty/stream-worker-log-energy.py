# case: stream-worker-log-energy
# kind: inf
# phase: input
# op: aten.log, DataLoader
# module: ''
# step: 4
# note: log energy of a silent frame is -inf, computed by an IterableDataset in its one worker process; the
#   training process receives the batch, LayerNorm turns it into NaN. Add a floor before the logarithm.
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class AudioStream(IterableDataset):
    def __init__(self, chunks, silent):
        self.chunks, self.silent = chunks, silent

    def __iter__(self):
        gen = torch.Generator().manual_seed(77)
        for i in range(self.chunks):
            wave = torch.randn(8, 160, generator=gen) * (0.2 + (i % 5))
            if i == self.silent:
                wave[6:] = 0.0
            energy = wave.square().mean(1)
            yield torch.log(energy), torch.tensor(i % 5)  # <-- origin


def build():
    return nn.Sequential(
        nn.LayerNorm(8, elementwise_affine=False), nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 5)
    )


def main():
    torch.manual_seed(0)
    net = build()
    opt = torch.optim.Adadelta(net.parameters(), lr=1.0)
    feed = iter(DataLoader(AudioStream(30, silent=19), batch_size=4, num_workers=1))
    step = 0
    while True:
        try:
            x, y = next(feed)  # <-- seen
        except StopIteration:
            break
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")
        step += 1


if __name__ == "__main__":
    main()
