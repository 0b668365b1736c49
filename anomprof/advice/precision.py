"""Advice on results beyond what float16 can hold, in ops that are known for it."""

from __future__ import annotations

from anomprof.advice import conditions, families
from anomprof.advice.entry import Entry

_CASTS = ("to_copy", "to", "copy", "half", "type_as", "autocast_to_reduced_precision")

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "overflow in a float16 cast",
        "float16 ends at 65504: a larger number becomes Inf when it is cast.",
        (
            "Keep this tensor in float32, or cast to `torch.bfloat16`, which has float32's range.",
            "Under autocast, compute it in a block with `torch.autocast(device_type, enabled=False)`.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=_CASTS,
        when=conditions.half,
        operand=(0, "the number to be cast"),
    ),
    Entry(
        "overflow in a float16 matrix product",
        "float16 ends at 65504, and a product sums many terms: attention scores and wide layers overflow "
        "first.",
        (
            "Scale before the product, not after: `(q * d ** -0.5) @ k.transpose(-2, -1)`.",
            "Use bfloat16 (`torch.autocast(device_type, dtype=torch.bfloat16)`) or float32 for this product.",
            "`F.scaled_dot_product_attention` scales by itself.",
        ),
        ops=families.PRODUCTS,
        when=conditions.half,
        operand=(0, "the first factor"),
    ),
    Entry(
        "overflow in a float16 sum",
        "float16 ends at 65504: the sum (or the sum of squares inside a norm or a variance) is larger.",
        (
            "Add up in float32: `x.sum(dim, dtype=torch.float32)` or `x.float().norm()`.",
            "Take means instead of sums over long dimensions, or use bfloat16.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=families.SUMS,
        when=conditions.half,
        operand=(0, "its input"),
    ),
    Entry(
        "exp in float16",
        "exp of more than 11.09 is beyond float16, which ends at 65504.",
        (
            "Compute it in float32: `torch.exp(x.float())`.",
            "Bound the argument: `torch.exp(x.clamp(max=10))`, or subtract the maximum first.",
        ),
        kinds=("inf",),
        ops=("exp", "exp2", "expm1", "sinh", "cosh"),
        when=conditions.half,
        operand=(0, "the argument"),
    ),
)
