# case: running-variance-overflow
# kind: inf
# phase: forward
# op: aten::native_batch_norm, aten::batch_norm, aten::_native_batch_norm_legit, aten::_batch_norm_with_update
# module: body.1
# step: 2
# note: one batch of 1e25 has a variance beyond float32; the loop skips its update, but batch norm has already
#   folded it into running_var. Check the input before the forward
import torch
from torch import nn


class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU())
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        h = self.body(x)  # <-- origin
        return self.head(h)


torch.manual_seed(3)
net = Meter()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
skipped = 0
for step in range(5):
    x = torch.randn(8, 3)
    y = x.sum(1, keepdim=True)
    if step == 2:
        x *= 1e25
    loss = nn.functional.mse_loss(net(x), y)
    if x.abs().max() > 1e6:
        skipped += 1
        print(step, "implausible batch, skipped")
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
net.eval()
print("running variance", net.body[1].running_var.tolist(), "skipped", skipped)
