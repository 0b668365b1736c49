# case: barzilai-borwein-flat-gradient
# kind: inf
# phase: optimizer
# op: aten.div
# module: ''
# step: 1
# note: the Barzilai-Borwein step s.s / s.y divides by the change of the gradient; with an L1 loss no
#   residual changed its sign, the gradient is bit for bit the same, y = 0 and the step is inf. Guard s.y.
import torch


def l1_problem(rows=50):
    gen = torch.Generator().manual_seed(8)
    design = torch.randn(rows, 3, generator=gen)
    target = design @ torch.tensor([4.0, -3.0, 2.0]) + 30.0
    return design, target


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


class Spectral:
    """Gradient descent with the (long) Barzilai-Borwein step; plain lr in the first step."""

    def __init__(self, params, first_lr):
        self.params = list(params)
        self.first_lr = first_lr
        self.old = None

    @torch.no_grad()
    def step(self):
        w, g = flat(self.params), flat([p.grad for p in self.params])
        if self.old is None:
            alpha = torch.tensor(self.first_lr)
        else:
            s, y = w - self.old[0], g - self.old[1]
            alpha = s.dot(s) / s.dot(y)  # <-- origin
        self.old = (w, g)
        for p in self.params:
            p -= alpha * p.grad
            p.grad = None
        return alpha.item()


def main():
    design, target = l1_problem()
    weight = torch.zeros(3, requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    opt = Spectral([weight, bias], first_lr=0.01)
    for step in range(5):
        residual = design @ weight + bias - target
        loss = residual.abs().mean()
        loss.backward()
        alpha = opt.step()
        print(f"step {step} loss {loss.item():.4f} alpha {alpha:.4g} bias {bias.item():.4f}")


if __name__ == "__main__":
    main()
