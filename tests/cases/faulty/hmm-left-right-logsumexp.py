# case: hmm-left-right-logsumexp
# kind: nan
# phase: backward
# op: LogsumexpBackward0, aten::logsumexp
# module: LeftRightHMM
# step: 0
# note: the -inf of a left-to-right topology is intended, and logsumexp of an unreachable state is rightly
#   -inf, but its gradient is exp(-inf - -inf) = NaN; use a large negative number instead of -inf
import torch
from torch import nn


class LeftRightHMM(nn.Module):
    """States may only be kept or advanced by one; decoding starts in state 0."""

    def __init__(self, states, symbols):
        super().__init__()
        self.move = nn.Parameter(0.1 * torch.randn(states, states))
        self.emit = nn.Parameter(0.1 * torch.randn(states, symbols))
        reach = torch.eye(states) + torch.diag(torch.ones(states - 1), 1)
        self.register_buffer("wall", reach.bool())
        start = torch.full((states,), -torch.inf)
        start[0] = 0.0
        self.register_buffer("start", start)

    def forward(self, seq):
        trans = self.move.masked_fill(~self.wall, -torch.inf).log_softmax(1)
        emit = self.emit.log_softmax(1)
        alpha = self.start + emit[:, seq[0]]
        for sym in seq[1:]:
            scores = alpha[:, None] + trans
            alpha = torch.logsumexp(scores, dim=0) + emit[:, sym]  # <-- origin
        return torch.logsumexp(alpha, dim=0)


def main():
    torch.manual_seed(0)
    hmm = LeftRightHMM(4, 6)
    opt = torch.optim.Adam(hmm.parameters(), lr=0.05)
    for it in range(3):
        loss = 0.0
        for _ in range(4):
            seq = torch.randint(0, 6, (9,)).sort().values
            loss = loss - hmm(seq) / len(seq)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"it {it} nll {loss.item():.4f}")


if __name__ == "__main__":
    main()
