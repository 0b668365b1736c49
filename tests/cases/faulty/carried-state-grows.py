# case: carried-state-grows
# kind: inf
# phase: forward
# op: aten.mm, aten.linear, aten.addmm
# module: cell.recur
# step: 12
# note: the ReLU cell's recurrent matrix is frozen with a gain of 2, the state is carried (detached) from
#   window to window and never reset, so it grows by a constant factor until it leaves the float32 range in
#   window 12; the read-out is normalised, so the losses look healthy until then. Reset or normalise the
#   state.
import torch
from torch import nn


class ReluCell(nn.Module):
    def __init__(self, dim, hidden, gain):
        super().__init__()
        self.inp = nn.Linear(dim, hidden)
        self.recur = nn.Linear(hidden, hidden, bias=False)
        with torch.no_grad():
            self.recur.weight.copy_(gain * torch.eye(hidden))
        self.recur.weight.requires_grad_(False)

    def forward(self, x, h):
        drive = self.inp(x).sigmoid()
        return torch.relu(drive + self.recur(h))  # <-- origin


class Reader(nn.Module):
    def __init__(self, dim=4, hidden=8):
        super().__init__()
        self.cell = ReluCell(dim, hidden, gain=2.0)
        self.out = nn.Linear(hidden, dim)

    def forward(self, window, h):
        outs = []
        for x in window:
            h = self.cell(x, h)
            outs.append(self.out(h / h.amax(1, keepdim=True)))
        return torch.stack(outs), h


def main(length=10):
    torch.manual_seed(0)
    net = Reader()
    opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-3)
    state = torch.zeros(3, 8)
    for step in range(16):
        series = torch.randn(length + 1, 3, 4)
        state = state.detach()
        out, state = net(series[:-1], state)
        loss = (out - series[1:]).abs().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        print(f"step {step} loss {loss.item():.4f} state {state.abs().max().item():.3g}")


if __name__ == "__main__":
    main()
