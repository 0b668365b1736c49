# case: resume-negative-running-var
# kind: nan
# phase: forward
# op: aten.native_batch_norm, aten._native_batch_norm_legit, aten._native_batch_norm_legit_no_training,
#   aten.batch_norm, aten.cudnn_batch_norm
# module: backbone.norm2
# step: 2
# note: the converter stored running_var as a signed difference, one entry is -0.4; finite, so loading is
#   silent, and while the batch norm trains it is not read. The backbone is frozen (eval) from step 2 on
#   and 1/sqrt(-0.4 + eps) is NaN. Check running_var >= 0 on load.
import tempfile
from pathlib import Path

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv1d(2, 6, 3, padding=1), nn.BatchNorm1d(6)
        self.conv2, self.norm2 = nn.Conv1d(6, 6, 3, padding=1), nn.BatchNorm1d(6, momentum=0.01)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = self.conv2(x)
        return torch.relu(self.norm2(x)).mean(2)  # <-- origin


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


def converted_checkpoint(path):
    torch.manual_seed(9)
    state = Backbone().state_dict()
    state["norm2.running_var"] = torch.tensor([0.8, 1.1, -0.4, 0.6, 0.9, 1.3])
    torch.save(state, path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "converted.pt"
        converted_checkpoint(path)
        torch.manual_seed(0)
        net = Detector()
        missing = net.backbone.load_state_dict(torch.load(path, weights_only=True))
    print("loaded", missing)
    opt = torch.optim.SGD(
        [{"params": net.backbone.parameters(), "lr": 1e-3}, {"params": net.head.parameters()}], lr=0.1
    )
    for step in range(5):
        net.train()
        if step >= 2:
            net.backbone.eval()
        x = torch.randn(10, 2, 16)
        loss = nn.functional.cross_entropy(net(x), torch.randint(0, 3, (10,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} frozen {not net.backbone.training} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
