# case: lagrangian-pendulum
# kind: inf
# phase: forward
# op: aten::_linalg_solve_ex, aten::linalg_solve_ex
# module: ''
# step: 0
# note: solve_ex does not check that the mass matrix can be inverted
import torch
import torch.nn as nn
from torch.func import functional_call, grad, hessian, jacfwd, vmap

torch.manual_seed(0)

lagrangian = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
weights = dict(lagrangian.named_parameters())


def energy(weights, q, v):
    return functional_call(lagrangian, weights, (torch.cat([q, v]),)).squeeze()


def acceleration(weights, q, v):
    mass = hessian(energy, argnums=2)(weights, q, v)
    force = grad(energy, argnums=1)(weights, q, v)
    mixed = jacfwd(grad(energy, argnums=2), argnums=1)(weights, q, v)
    right = force - mixed @ v
    return torch.linalg.solve_ex(mass, right)[0]  # <-- origin


predict = vmap(acceleration, in_dims=(None, 0, 0))
opt = torch.optim.Adam(lagrangian.parameters(), lr=1e-3)

for step in range(3):
    angle = (torch.rand(20, 1) - 0.5) * 3.0
    speed = torch.randn(20, 1)
    truth = -9.81 * torch.sin(angle)
    loss = (predict(weights, angle, speed) - truth).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step}: mean error {loss.item():.4f}")
