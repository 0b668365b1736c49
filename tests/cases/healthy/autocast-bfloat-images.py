# case: autocast-bfloat-images
# kind: none
# note: bfloat16 autocast over a small convolutional network with batch norm, dropout and values near 1e30,
#   which bfloat16 still holds
import torch
from torch import nn

torch.manual_seed(6)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1),
    nn.BatchNorm2d(4),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Dropout(0.2),
    nn.Flatten(),
    nn.Linear(64, 3),
)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(4):
    image = torch.rand(6, 1, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(image)
        huge = logits.abs().amax() * 1e30
        loss = nn.functional.cross_entropy(logits, torch.arange(6) % 3) + 1e-34 * huge.float()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
net.eval()
with torch.inference_mode():
    print(net(torch.rand(2, 1, 8, 8)).argmax(1).tolist())
