# case: ddp-int8-hook-zero-bucket
# kind: nan
# phase: backward
# op: aten.div
# module: ''
# step: 2
# rank: 0
# note: the 8-bit compression hook divides the bucket by its largest entry / 127; in a batch without a
#   violated margin the whole bucket is 0 and 0/0 is written into every gradient. Clamp the scale. World
#   size 1, gloo.
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def int8_hook(group, bucket):
    flat = bucket.buffer()
    scale = flat.abs().max() / 127.0
    levels = torch.round(flat / scale)  # <-- origin
    packed = (levels * scale).div(group.size())
    work = dist.all_reduce(packed, group=group, async_op=True)
    return work.get_future().then(lambda fut: fut.value()[0])


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        torch.manual_seed(0)
        net = DDP(Ranker())
        net.register_comm_hook(dist.group.WORLD, int8_hook)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(5):
            good, bad = torch.randn(8, 5) + 0.5, torch.randn(8, 5) - 0.5
            margin = 0.2 if step != 2 else -50.0  # curriculum: an easy round
            loss = torch.relu(margin - net(torch.cat([good, bad])).view(2, 8).diff(dim=0).neg()).mean()
            opt.zero_grad()
            loss.backward()  # <-- seen
            opt.step()
            print(f"step {step} loss {loss.item():.4f}")
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
