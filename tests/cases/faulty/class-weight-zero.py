# case: class-weight-zero
# kind: nan
# phase: forward
# op: aten::nll_loss_forward, aten::nll_loss, aten::cross_entropy_loss
# module: ''
# step: 2
# note: the weighted mean divides by the summed class weights, and this batch holds only the class with weight
#   0
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Embedding(12, 5), nn.Flatten(), nn.Linear(15, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.2)
weight = torch.tensor([0.0, 1.0, 2.5])  # "outside" tokens do not count
for step in range(4):
    words = torch.randint(0, 12, (6, 3))
    tags = torch.tensor([0, 1, 2, 0, 1, 0])
    if step == 2:
        tags.zero_()
    loss = nn.functional.nll_loss(net(words).log_softmax(1), tags, weight=weight)  # <-- origin
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 5))
