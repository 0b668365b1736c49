# case: ctc-repeated-labels
# kind: inf
# phase: forward
# op: aten::_ctc_loss, aten::ctc_loss
# module: ''
# step: 2
# note: five equal labels need four blanks between them, nine frames in all, but there are only seven; count
#   repeats when filtering
import torch
from torch import nn


class Speller(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 10)
        self.letters = nn.Linear(10, 5)

    def forward(self, frames):
        return self.letters(self.rnn(frames)[0]).log_softmax(-1)


torch.manual_seed(3)
net = Speller()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
ctc = nn.CTCLoss()
for step in range(4):
    words = torch.tensor([[1, 2, 1, 2, 3], [4, 1, 3, 2, 1], [2, 3, 4, 1, 2]])
    if step == 2:
        words[1] = 4
    logp = net(torch.randn(7, 3, 6))
    loss = ctc(logp, words, torch.full((3,), 7), torch.full((3,), 5))  # <-- origin
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
