# case: four-norm-clipping
# kind: inf
# phase: optimizer
# op: aten::linalg_vector_norm, aten::_foreach_norm, aten::norm
# module:
# step: 1
# note: the 4-norm of gradients around 1e12 needs 1e48 and overflows float32, so clipping multiplies every
#   gradient by 0 and this update is silently lost; use norm_type=2 or inf
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Softsign(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    price = 1e12 if step >= 1 else 1.0  # a table in another currency
    x = torch.randn(9, 3)
    loss = price * nn.functional.l1_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0, norm_type=4.0)  # <-- origin
    before = net[0].bias.detach().clone()
    opt.step()
    print(f"step {step} loss {loss.item():.3g} moved {not torch.equal(before, net[0].bias)}")
