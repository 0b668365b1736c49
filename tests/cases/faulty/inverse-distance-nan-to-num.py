# case: inverse-distance-nan-to-num
# kind: inf
# phase: forward
# op: aten::reciprocal
# module: interpolate
# step: 1
# note: a query that coincides with a sensor gets the weight 1/0 = inf; nan_to_num hides it from the output,
#   but the product with the readings saved it and gives 0 * inf in backward
import torch
from torch import nn


class Interpolate(nn.Module):
    def forward(self, query, sensors, reading):
        far = torch.cdist(query, sensors)
        weight = far.reciprocal()  # <-- origin
        share = (weight * reading).nan_to_num(posinf=1.0, neginf=-1.0)
        return share.sum(-1)


class Weather(nn.Module):
    def __init__(self):
        super().__init__()
        self.calibrate = nn.Linear(6, 6)
        self.interpolate = Interpolate()

    def forward(self, query, sensors, raw):
        return self.interpolate(query, sensors, self.calibrate(raw))


torch.manual_seed(6)
net = Weather()
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
sensors = torch.randn(6, 2)
for hour in range(3):
    query = torch.randn(4, 2)
    if hour == 1:
        query[3] = sensors[0]
    pred = net(query, sensors, torch.randn(4, 6))
    loss = nn.functional.huber_loss(pred, torch.zeros(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(hour, loss.item())
