# case: max-pool-inf-padding
# kind: none
# note: -inf is the padding of a maximum over variable lengths, in F.pad before a max pool and in pad_sequence
#   before amax; each window holds a real value
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence


class PeakPool(nn.Module):
    def forward(self, x):
        x = F.pad(x, (1, 2), value=-torch.inf)
        return F.max_pool1d(x, 4, stride=2)


torch.manual_seed(7)
conv, pool, out = nn.Conv1d(2, 4, 3), PeakPool(), nn.Linear(4, 2)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=1e-2)
for step in range(4):
    clips = [torch.randn(2, n) for n in (6, 11, 8)]
    peaks = [pool(conv(clip[None]))[0].T for clip in clips]
    top = pad_sequence(peaks, batch_first=True, padding_value=-torch.inf).amax(1)
    loss = F.cross_entropy(out(top), torch.tensor([0, 1, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
