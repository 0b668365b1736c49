# case: sgd-foreach-diverges
# kind: inf
# phase: forward
# op: aten.mse_loss
# module: ''
# step: 5
# note: plain divergence: each update multiplies the error by a constant factor, the squared error is the
#   first value beyond the float32 range while weights, outputs and gradients are still finite. Lower the
#   learning rate or scale the inputs.
import torch
from torch import nn


def houses(n):
    area = torch.linspace(40.0, 240.0, n).unsqueeze(1)
    rooms = (area / 30).round()
    return torch.cat([area, rooms], 1), 3.0 * area + 10.0 * rooms


def fit(lr, steps):
    torch.manual_seed(5)
    x, price = houses(64)
    net = nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=torch.tensor(lr), foreach=True)
    criterion = nn.MSELoss()
    for step in range(steps):
        pred = net(x)
        loss = criterion(pred, price)  # <-- origin
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step:2d} loss {loss.item():.4g} weight {net.weight[0, 0].item():.4g}")


if __name__ == "__main__":
    fit(lr=0.1, steps=13)
