# case: packed-frames-zero-norm
# kind: nan
# phase: forward
# op: aten::div
# module: reader
# step: 1
# note: the frames inside a PackedSequence are divided by their own length, and one frame is all zero; add an
#   eps to the norm
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 6)

    def forward(self, packed):
        frames = packed.data
        frames = frames / frames.norm(dim=1, keepdim=True)  # <-- origin
        packed = PackedSequence(frames, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        states, lengths = pad_packed_sequence(self.gru(packed)[0])
        return states.sum(0) / lengths[:, None]


class Gesture(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = Reader()
        self.label = nn.Linear(6, 2)

    def forward(self, packed):
        return self.label(self.reader(packed))


torch.manual_seed(4)
net = Gesture()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(3):
    clips = [torch.randn(n, 3) for n in (4, 7, 2, 5)]
    if step == 1:
        clips[1][5] = 0.0  # a dropped camera frame
    loss = nn.functional.cross_entropy(
        net(pack_sequence(clips, enforce_sorted=False)), torch.tensor([0, 1, 1, 0])
    )
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step}: {loss.item():.4f}")
