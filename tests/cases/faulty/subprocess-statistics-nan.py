# case: subprocess-statistics-nan
# kind: nan
# phase: input, parameter
# op: aten.lift_fresh, torch.tensor, aten.copy_, aten.clone, aten.detach
# module: Regressor, ''
# step: 0
# note: a helper process computes mean and standard deviation as JSON; column 2 has one recorded value
#   only, its deviation is NaN (Python's json writes and reads NaN without complaint) and becomes a buffer
#   of the model before the first step. Validate the file.
import json
import subprocess
import sys

import torch
from torch import nn

HELPER = """
import json
columns = [[1.0, 2.0, 4.0, 3.0], [0.5, 0.1, 0.2, 0.9], [7.0]]
def deviation(v, m):
    return (sum((x - m) ** 2 for x in v) / (len(v) - 1)) ** 0.5 if len(v) > 1 else float("nan")
means = [sum(c) / len(c) for c in columns]
print(json.dumps({"mean": means, "std": [deviation(c, m) for c, m in zip(columns, means)]}))
"""


def statistics():
    done = subprocess.run([sys.executable, "-c", HELPER], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Regressor(nn.Module):
    def __init__(self, stats):
        super().__init__()
        self.register_buffer("mean", torch.tensor(stats["mean"]))
        self.register_buffer("std", torch.tensor(stats["std"]))  # <-- origin
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Mish(), nn.Linear(8, 1))

    def forward(self, x):
        return self.net((x - self.mean) / self.std)


def main():
    torch.manual_seed(0)
    model = Regressor(statistics())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(3):
        x = torch.rand(16, 3) * torch.tensor([4.0, 1.0, 9.0])
        loss = nn.functional.huber_loss(model(x).squeeze(1), x[:, 0] * x[:, 1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
