# case: groupnorm-blank-tile
# kind: nan
# phase: forward
# op: aten::native_group_norm, aten::group_norm
# module: encoder.1.norm
# step: 3
# note: a group of a blank tile has no variance, and eps is 0
import torch
import torch.nn as nn

torch.manual_seed(0)


class ConvUnit(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, cout, eps=0.0)
        self.act = nn.SiLU()

    def forward(self, x):
        x = self.conv(x)
        x = self.norm(x)  # <-- origin
        return self.act(x)


class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.relu(self.conv(x))


class TileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(Stem(), ConvUnit(6, 8), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.encoder(x).amax(dim=(2, 3)))


def tiles(step):
    slide = torch.rand(6, 1, 10, 10)
    if step == 3:
        slide[2] = 0.0  # background of the slide
    return slide, torch.randint(0, 2, (6,))


model = TileNet()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
for step in range(5):
    x, y = tiles(step)
    opt.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    opt.step()
    print(f"{step:2d} {loss.item():.4f}")
