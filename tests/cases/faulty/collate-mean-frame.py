# case: collate-mean-frame
# kind: nan
# phase: input
# op: aten::mean
# module: ''
# step: 1
# note: the collate function averages the frames of each clip, and the mean of a clip with no frame is NaN;
#   drop empty clips
import torch
from torch import nn
from torch.utils.data import DataLoader

LENGTHS = [3, 5, 2, 4, 6, 0, 1, 3, 2, 2, 5, 4]


def collate(items):
    clips, labels = zip(*items, strict=True)
    pooled = [clip.mean(dim=0) for clip in clips]  # <-- origin
    return torch.stack(pooled), torch.tensor(labels)


def main():
    torch.manual_seed(4)
    data = [(torch.randn(n, 3), n % 2) for n in LENGTHS]
    loader = DataLoader(data, batch_size=4, collate_fn=collate)
    net = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 2))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
