"""Advice on means, losses and other reductions that had nothing to reduce."""

from __future__ import annotations

from anomprof.advice import conditions, families
from anomprof.advice.entry import Entry

_MEAN_LOSSES = ("mean", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "mean of nothing",
        "The mean of no elements is 0/0 = NaN: a mask or a filter has left nothing over.",
        (
            "Give an empty selection a loss of 0: `x.sum() / max(x.numel(), 1)`.",
            "Skip the batch before the forward pass: `if not mask.any(): continue`.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=(*_MEAN_LOSSES, "sum", "var", "std", "var_mean", "nanmean", "nanmedian", "median"),
        when=conditions.empty,
        operand=(0, "its input"),
    ),
    Entry(
        "standard deviation of one sample",
        "The unbiased variance divides by n - 1: of a single sample it is 0/0 = NaN.",
        (
            "Use the biased estimate: `x.std(dim, correction=0)`, and divide by `std + eps`.",
            "Leave out batches of one: `DataLoader(..., drop_last=True)`.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=("std", "var", "var_mean", "std_mean"),
    ),
    Entry(
        "mean that selects nothing",
        "A mean over nothing is 0/0 = NaN, and so is a sum of +Inf and -Inf.",
        (
            "Give an empty selection a loss of 0: `x.sum() / max(x.numel(), 1)`.",
            "Skip the batch before the forward pass where its mask selects nothing.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=_MEAN_LOSSES,
        operand=(0, "its input"),
    ),
    Entry(
        "cross entropy with all targets ignored",
        "Every target of the batch equals `ignore_index`, so the mean over targets is 0/0 = NaN.",
        (
            "Skip such batches: `if (target == ignore_index).all(): continue`.",
            "Divide yourself: `F.cross_entropy(x, y, reduction='sum') / (y != ignore).sum().clamp_min(1)`.",
            "Class weights that are all 0 for the targets of the batch do the same.",
        ),
        kinds=("nan",),
        ops=(
            "nll_loss",
            "nll_loss_forward",
            "nll_loss2d",
            "nll_loss2d_forward",
            "cross_entropy_loss",
            "nll_loss_nd",
        ),
    ),
    Entry(
        "CTC target longer than its input",
        "CTC has no alignment for a target longer than its input (each repeated label needs one frame more): "
        "the loss is Inf, and its gradient NaN.",
        (
            "Drop such samples, or use `nn.CTCLoss(zero_infinity=True)`.",
            "Check that `input_lengths` counts frames after subsampling and `target_lengths` counts labels.",
        ),
        ops=("ctc_loss", "cudnn_ctc_loss", "miopen_ctc_loss"),
    ),
)
