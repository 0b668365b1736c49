# case: accumulate-empty-token-window
# kind: nan
# phase: optimizer
# op: aten.div_, aten._foreach_div_
# module: ''
# step: 3
# note: the summed losses of three micro-batches are divided after the fact by the number of target tokens;
#   window 3 holds only ignored targets, its gradients are exactly 0 and 0/0 = NaN. Clamp the count to at
#   least 1 or skip the window.
import torch
from torch import nn

PAD = -100


class CharModel(nn.Module):
    def __init__(self, vocab=12, dim=10):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


def windows(count, micro, gen):
    for w in range(count):
        parts = []
        for _ in range(micro):
            ids = torch.randint(0, 12, (4, 7), generator=gen)
            target = ids.roll(-1, 1)
            target[:, -1] = PAD
            if w == 3:
                target[:] = PAD  # prompts only, no answer tokens
            parts.append((ids, target))
        yield parts


def main():
    torch.manual_seed(0)
    net = CharModel()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, foreach=True)
    gen = torch.Generator().manual_seed(1)
    for step, parts in enumerate(windows(6, 3, gen)):
        opt.zero_grad()
        tokens, total = torch.zeros(()), 0.0
        for ids, target in parts:
            logits = net(ids)
            loss = nn.functional.cross_entropy(
                logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"
            )
            loss.backward()
            tokens += (target != PAD).sum()
            total += loss.item()
        grads = [p.grad for p in net.parameters()]
        torch._foreach_div_(grads, tokens)  # <-- origin
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        opt.step()
        print(f"step {step} tokens {int(tokens)} summed loss {total:.3f}")


if __name__ == "__main__":
    main()
