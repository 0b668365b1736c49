"""Advice on layers and products whose values have grown too large."""

from __future__ import annotations

from anomprof.advice import conditions, families
from anomprof.advice.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "batch norm statistics",
        "The statistics of the batch (or the running ones) are not finite: huge activations overflow the "
        "variance, one value per channel has none.",
        (
            "Normalise the input of this layer, and run it in float32 under autocast.",
            "Leave out batches of one (`drop_last=True`), or use `nn.GroupNorm`, which needs no batch.",
            "Were the running statistics poisoned earlier? `bn.reset_running_stats()`.",
        ),
        ops=(
            "native_batch_norm",
            "native_batch_norm_legit",
            "cudnn_batch_norm",
            "batch_norm",
            "miopen_batch_norm",
            "batch_norm_with_update",
            "batch_norm_impl_index",
            "native_batch_norm_legit_no_training",
        ),
        operand=(0, "its input"),
    ),
    Entry(
        "normalisation layer",
        "The variance inside the layer overflowed, or its eps is too small for the type.",
        (
            "Run the layer in float32 (autocast does by itself), or raise its `eps` to 1e-5 or more.",
            "Look at the size of its input: residual streams grow with depth; normalise before the layer.",
        ),
        ops=(
            "native_layer_norm",
            "layer_norm",
            "native_group_norm",
            "group_norm",
            "rms_norm",
            "fused_rms_norm",
        ),
        operand=(0, "its input"),
    ),
    Entry(
        "bfloat16 overflow",
        "bfloat16 has float32's range, so the values themselves have grown beyond 3e38: this is divergence, "
        "not a matter of precision.",
        (
            "Lower the learning rate, warm it up, and clip: `clip_grad_norm_(model.parameters(), 1.0)`.",
            "Look at the range of this module's input over the last steps: where did the growth begin?",
        ),
        kinds=("inf",),
        phases=("forward",),
        ops=(*families.PRODUCTS, *families.SUMS, "mul", "add"),
        when=conditions.bfloat,
        operand=(0, "the first input"),
    ),
    Entry(
        "float16 overflow",
        "float16 ends at 65504, and the result is larger.",
        (
            "Compute this line in float32: `x.float()`, or use bfloat16, which has float32's range.",
            "Under autocast, put it in a block with `torch.autocast(device_type, enabled=False)`.",
        ),
        kinds=("inf",),
        when=conditions.half,
        phases=("forward", "input"),
        operand=(0, "the first input"),
    ),
    Entry(
        "values that grew without bound",
        "Products and sums overflow only when their inputs are huge already: weights or activations have "
        "diverged in earlier steps.",
        (
            "Lower the learning rate, warm it up, and clip: `clip_grad_norm_(model.parameters(), 1.0)`.",
            "Check the units of the data: standardise inputs and targets to about 1.",
        ),
        kinds=("inf",),
        phases=("forward",),
        ops=(
            *families.PRODUCTS,
            *families.SUMS,
            "mul",
            "add",
            "sub",
            "addcmul",
            "prod",
            "cumprod",
            "mse_loss",
            "smooth_l1_loss",
        ),
        operand=(0, "the first input"),
    ),
    Entry(
        "infinities in a product",
        "A product that holds Inf gives NaN where it meets 0, or Inf of the other sign.",
        (
            "Find where the Inf came from (see the chain) and keep that value finite.",
            "Masked values must be finite before a product: `masked_fill(mask, 0.0)`, not `-inf`.",
        ),
        kinds=("nan",),
        phases=("forward",),
        ops=(*families.PRODUCTS, "sum", "cumsum"),
    ),
)
