# case: gamma-curve-negative-base
# kind: nan
# phase: forward
# op: aten::pow
# module: 0
# step: 0
# note: standardised pixels are negative for half of the image and x ** 0.45 is NaN there; apply the gamma
#   curve before standardising
import torch
from torch import nn


class Gamma(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, image):
        return image**self.value  # <-- origin


torch.manual_seed(3)
net = nn.Sequential(Gamma(0.45), nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
images = torch.rand(5, 1, 8, 8)
images = (images - images.mean()) / images.std()
labels = torch.tensor([0, 1, 1, 0, 1])
for epoch in range(2):
    loss = nn.functional.cross_entropy(net(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("epoch", epoch, loss.item())
