# case: barzilai-borwein-by-hand
# kind: nan
# phase: optimizer
# op: aten::div
# module: ''
# step: 2
# note: a step length from the change of the gradient is 0/0 when the same point is evaluated twice; keep the
#   old length when nothing changed. There is no optimizer object
import torch

torch.manual_seed(9)
a = torch.diag(torch.tensor([1.0, 3.0, 8.0]))
w = torch.tensor([4.0, -2.0, 1.0], requires_grad=True)
old_w = old_g = None
for step in range(4):
    loss = 0.5 * w @ a @ w
    loss.backward()
    with torch.no_grad():
        length = torch.tensor(0.05)
        if old_g is not None:
            ds, dg = w - old_w, w.grad - old_g
            length = ds.dot(ds) / ds.dot(dg)  # <-- origin
        old_w, old_g = w.clone(), w.grad.clone()
        if step != 1:  # the second update was commented out while debugging
            w -= length * w.grad
        w.grad = None
    print(step, loss.item())
