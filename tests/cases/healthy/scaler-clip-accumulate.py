# case: scaler-clip-accumulate
# kind: none
# note: the scale starts far too high: the float16 backward overflows, the norm is inf, clipping makes NaN
#   of it, the scaler skips the update and halves its scale until it fits; the weights are never touched by
#   it and training goes on.
import torch
from torch import nn


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 4))
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**21, growth_interval=500)
    micro, done, skipped = 2, 0, 0
    for window in range(14):
        opt.zero_grad(set_to_none=True)
        total = 0.0
        for _ in range(micro):
            x = torch.randn(16, 8)
            y = x[:, :4].argmax(1)
            with torch.autocast("cpu", dtype=torch.float16):
                logits = net(x)
                loss = nn.functional.cross_entropy(logits.float(), y) / micro
            scaler.scale(loss).backward()
            total += loss.item()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        old = scaler.get_scale()
        scaler.step(opt)
        scaler.update()
        if scaler.get_scale() < old:
            skipped += 1
        else:
            done += 1
        print(
            f"window {window} loss {total:.4f} norm {norm.item():.3f} scale {old:.0f} "
            f"updates {done} skipped {skipped}"
        )
    assert all(p.isfinite().all() for p in net.parameters())


if __name__ == "__main__":
    main()
