# case: smoothing-over-masked-logits
# kind: inf
# phase: forward
# op: aten::masked_fill, aten::masked_fill_
# module: head
# step: 0
# note: label smoothing gives every class a share, also the hidden ones whose logit is -inf, so the loss is
#   inf; hide with -1e4 or smooth over visible classes only
import torch
from torch import nn


class MaskedHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(7, 6)
        self.register_buffer("hidden", torch.tensor([0, 0, 0, 0, 1, 1], dtype=torch.bool))

    def forward(self, h):
        return self.fc(h).masked_fill(self.hidden, -torch.inf)  # <-- origin


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(5, 7)
        self.head = MaskedHead()

    def forward(self, x):
        return self.head(torch.relu(self.enc(x)))


torch.manual_seed(1)
net = Classifier()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(3):
    loss = criterion(net(torch.randn(10, 5)), torch.randint(0, 4, (10,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, "loss", loss.item())
