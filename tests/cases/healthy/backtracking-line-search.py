# case: backtracking-line-search
# kind: none
# note: the first trial step of the line search is far too long, exp overflows and the trial loss (under
#   no_grad) is inf or NaN; the rule rejects it and halves the step. Accepted weights are always finite.
import torch


def poisson_nll(w, x, counts):
    eta = x @ w
    return (torch.exp(eta) - counts * eta).mean()


def armijo(w, grad, loss, objective, first, shrink=0.5, slope=1e-4):
    step, rejected = first, 0
    with torch.no_grad():
        while True:
            trial = w - step * grad
            value = objective(trial)
            if value <= loss - slope * step * grad.dot(grad):  # False for inf and NaN
                return trial, step, rejected
            step *= shrink
            rejected += 1


def main():
    gen = torch.Generator().manual_seed(5)
    x = torch.randn(80, 4, generator=gen)
    counts = torch.poisson(torch.exp(x @ torch.tensor([0.5, -0.4, 0.2, 0.0]) + 0.3), generator=gen)
    w = torch.zeros(4, requires_grad=True)
    for it in range(7):
        loss = poisson_nll(w, x, counts)
        (grad,) = torch.autograd.grad(loss, w)
        new, step, rejected = armijo(w, grad, loss.detach(), lambda t: poisson_nll(t, x, counts), first=256.0)
        with torch.no_grad():
            w.copy_(new)
        print(f"iteration {it} loss {loss.item():.5f} step {step:.4g} rejected {rejected}")


if __name__ == "__main__":
    main()
