# case: ctc-well-formed
# kind: none
# note: the CTC loss keeps -inf in its auxiliary output for unreachable states, in every healthy step;
#   zero_infinity removes one impossible sample as intended
import torch
from torch import nn

torch.manual_seed(9)
reader = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 5))
opt = torch.optim.Adam(reader.parameters(), lr=1e-2)
ctc = nn.CTCLoss(zero_infinity=True)
for step in range(5):
    frames = torch.randn(9, 4, 6)
    words = torch.randint(1, 5, (4, 4))
    lengths = torch.tensor([4, 3, 1, 2])
    if step == 3:
        words[0] = 2
        frames = frames[:6]  # four equal letters do not fit into six frames
    logp = reader(frames).log_softmax(-1)
    loss = ctc(logp, words, torch.full((4,), frames.size(0)), lengths)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, round(loss.item(), 4))
