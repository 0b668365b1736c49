# case: prefetch-thread-whitening
# kind: nan
# phase: input, forward
# op: aten.div
# module: ''
# step: 2, 3, 4
# note: a daemon thread reads and normalises batches into a queue of one; frame 4 of the recording is
#   black, min == max and 0/0. The op runs in the thread, at a time when the main loop may still be up to
#   two steps behind. Epsilon in the range.
import queue
import threading

import torch
from torch import nn


class Prefetcher:
    def __init__(self, source, prepare, depth=1):
        self.box = queue.Queue(maxsize=depth)
        self.thread = threading.Thread(target=self.pump, args=(source, prepare), daemon=True)
        self.thread.start()

    def pump(self, source, prepare):
        for raw, label in source:
            self.box.put((prepare(raw), label))
        self.box.put(None)

    def __iter__(self):
        while (item := self.box.get()) is not None:  # <-- seen
            yield item


def recording(frames):
    gen = torch.Generator().manual_seed(13)
    for i in range(frames):
        image = torch.rand(6, 1, 8, 8, generator=gen)
        if i == 4:
            image.zero_()
        yield image, torch.randint(0, 2, (6,), generator=gen)


def stretch(raw):
    low, high = raw.amin(), raw.amax()
    return (raw - low) / (high - low)  # <-- origin


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    for step, (x, y) in enumerate(Prefetcher(recording(7), stretch)):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
