# case: distill-half-square-overflow
# kind: inf
# phase: forward
# op: aten.mul
# module: ''
# step: 2
# note: under float16 autocast the squared feature distance passes 65504 as soon as the teacher's features
#   differ by more than 256; the loss is inf in every later step and the scaler skips for ever. Take the
#   difference in float32.
import torch
from torch import nn


def tower(width, seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, width), nn.GELU(), nn.Linear(width, 6))


def feature_gap(a, b):
    delta = a - b
    energy = delta * delta  # <-- origin
    return energy.mean()


def run(steps=8):
    teacher, student = tower(32, 1).eval(), tower(12, 2)
    opt = torch.optim.SGD(student.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    torch.manual_seed(3)
    taken = 0
    for step in range(steps):
        x = torch.randn(16, 8)
        if step >= 2:
            x = x * 1500.0  # second shard: raw sensor counts
        with torch.autocast("cpu", dtype=torch.float16):
            with torch.no_grad():
                want = teacher(x)
            loss = feature_gap(student(x), want)
        opt.zero_grad()
        scaler.scale(loss).backward()
        before = student[0].weight.detach().clone()
        scaler.step(opt)
        scaler.update()
        taken += int(not torch.equal(before, student[0].weight))
        print(f"step {step} loss {loss.item():.4f} scale {scaler.get_scale()} updates {taken}")


if __name__ == "__main__":
    run()
