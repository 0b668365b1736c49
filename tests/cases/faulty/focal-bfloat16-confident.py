# case: focal-bfloat16-confident
# kind: inf
# phase: forward
# op: aten::log
# module: FocalLoss
# step: 2
# note: bfloat16 has 8 bits of precision, so a probability of 0.998 rounds to 1 and log(1 - p) is -inf,
#   which reaches the loss for every negative; compute the loss from float32 logits with logsigmoid
import torch
import torch.nn as nn


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, p, target):
        log_p = torch.log(p)
        log_q = torch.log(1 - p)  # <-- origin
        pos = -self.alpha * (1 - p) ** self.gamma * target * log_p
        neg = -(1 - self.alpha) * p**self.gamma * (1 - target) * log_q
        return (pos + neg).mean()


torch.manual_seed(3)
net = nn.Sequential(nn.Conv1d(2, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 1, 1), nn.Sigmoid())
criterion = FocalLoss()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(4, 2, 30)
    y = (x[:, :1] > 1).float()
    if step == 2:
        x[1] *= 40  # a saturated sensor
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = net(x)
        loss = criterion(p, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, p.dtype, "focal", round(loss.item(), 4))
