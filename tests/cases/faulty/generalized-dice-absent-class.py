# case: generalized-dice-absent-class
# kind: inf
# phase: forward
# op: aten::reciprocal
# module: GeneralizedDiceLoss
# step: 3
# note: the class weight 1 / volume^2 is inf where the class is absent, and inf * 0 (the overlap) is NaN;
#   replace infinite weights by the largest finite one
import torch
import torch.nn as nn
import torch.nn.functional as F


class GeneralizedDiceLoss(nn.Module):
    """Sudre et al.: every class weighs the inverse of its squared volume."""

    def forward(self, logits, labels):
        probs = logits.softmax(dim=1).flatten(2)
        onehot = F.one_hot(labels, logits.shape[1]).movedim(-1, 1).flatten(2).float()
        volume = onehot.sum(dim=(0, 2))
        weight = 1.0 / (volume * volume)  # <-- origin
        overlap = (probs * onehot).sum(dim=(0, 2))
        total = (probs + onehot).sum(dim=(0, 2))
        return 1 - 2 * (weight * overlap).sum() / (weight * total).sum()


class TinyUNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.head = nn.Conv2d(9, classes, 1)

    def forward(self, x):
        h = F.relu(self.mid(F.relu(self.down(x))))
        return self.head(torch.cat([self.up(h), x], 1))


def scan(g, with_lesion):
    image = torch.randn(2, 1, 12, 12, generator=g)
    labels = (image[:, 0] > 0.3).long()
    if with_lesion:
        labels[:, 4:7, 4:7] = 2
    return image, labels


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(5)
    net = TinyUNet(3)
    criterion = GeneralizedDiceLoss()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for it in range(5):
        image, labels = scan(g, with_lesion=it != 3)
        loss = criterion(net(image), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("it", it, "gdl", round(loss.item(), 4))


main()
