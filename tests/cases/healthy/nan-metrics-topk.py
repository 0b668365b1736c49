# case: nan-metrics-topk
# kind: none
# note: accuracy of a class without samples is 0/0 (nanmean ignores it), perplexity of the untrained model
#   overflows to inf in a log line, top-k sampling fills with -inf before a softmax: none of it touches
#   training or what the model returns.
import torch
from torch import nn

CLASSES = 7


def per_class_accuracy(logits, y):
    hit = (logits.argmax(1) == y).float()
    right = torch.zeros(CLASSES).index_add_(0, y, hit)
    count = torch.bincount(y, minlength=CLASSES)
    return right / count


def draw(logits, k, gen):
    kth = logits.topk(k, dim=1).values[:, -1:]
    kept = logits.masked_fill(logits < kth, -torch.inf)
    return torch.multinomial(kept.softmax(1), 1, generator=gen).squeeze(1)


def evaluate(net, x, y, gen):
    net.eval()
    with torch.no_grad():
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        acc = per_class_accuracy(logits, y)
        perplexity = torch.exp(loss * 200)  # per document of 200 tokens
        picked = draw(logits, 3, gen)
    net.train()
    return loss.item(), acc, perplexity.item(), picked


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    net = nn.Sequential(
        nn.Linear(6, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.1), nn.Linear(20, CLASSES)
    )
    opt = torch.optim.Rprop(net.parameters(), lr=1e-3)
    vx = torch.randn(30, 6)
    vy = vx[:, :5].argmax(1)  # classes 5 and 6 never occur here
    for step in range(6):
        x = torch.randn(48, 6)
        loss = nn.functional.cross_entropy(net(x), x.argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        val, acc, ppl, picked = evaluate(net, vx, vy, gen)
        print(
            f"step {step} loss {loss.item():.4f} val {val:.4f} mean acc {acc.nanmean().item():.3f} "
            f"missing {int(acc.isnan().sum())} doc ppl {ppl:.3g} sampled {picked[:4].tolist()}"
        )


if __name__ == "__main__":
    main()
