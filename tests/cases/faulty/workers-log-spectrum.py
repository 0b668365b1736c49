# case: workers-log-spectrum
# kind: inf
# phase: input
# op: aten::log10, aten::log, DataLoader
# module: ''
# step: 1
# note: the decibels of a silent recording are log10(0) = -inf, computed in a worker process; add a floor. The
#   line where the batch arrives is accepted too
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __len__(self):
        return 18

    def __getitem__(self, i):
        wave = torch.sin(torch.arange(16) * 0.1 * (i + 1))
        if i == 10:
            wave = torch.zeros(16)
        decibel = 20 * torch.log10(torch.fft.rfft(wave).abs())  # <-- origin
        return decibel, i % 2


def main():
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(9, 6), nn.ReLU(), nn.Linear(6, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = DataLoader(Recordings(), batch_size=6, num_workers=1)
    for i, (x, y) in enumerate(loader):  # <-- seen
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(i, loss.item())


if __name__ == "__main__":
    main()
