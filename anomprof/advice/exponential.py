"""Advice on exponentials, softmax, and the masks of -inf that go with it."""

from __future__ import annotations

from anomprof.advice import conditions, families
from anomprof.advice.entry import Entry

_SOFTMAXES = (
    "softmax", "log_softmax", "masked_softmax", "logsumexp",
    "transformer_encoder_layer_fwd", "native_multi_head_attention",
    "scaled_dot_product_attention", "scaled_dot_product_flash_attention",
    "scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_efficient_attention",
)  # fmt: skip

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "softmax written by hand",
        "exp overflows float32 above 88.7, and a softmax written by hand then divides Inf by Inf.",
        (
            "Use `torch.softmax(x, dim)`, which subtracts the maximum first; for losses `F.cross_entropy`.",
            "For the logarithm of a sum of exponentials use `torch.logsumexp(x, dim)`.",
        ),
        kinds=("inf",),
        ops=("exp",),
        code=r"score|logit|soft|attn|attention|energ|sim|temp|tau",
        operand=(0, "the argument"),
    ),
    Entry(
        "exp of a log-variance",
        "A predicted log-variance has no bound, and exp overflows float32 above 88.7.",
        (
            "Bound it: `logvar = logvar.clamp(-20, 10)` before `logvar.exp()`.",
            "Predict the scale as `F.softplus(raw) + eps`, which grows only linearly.",
        ),
        kinds=("inf",),
        ops=("exp",),
        code=r"log_?var|log_?std|log_?sigma|log_?scale",
        operand=(0, "the argument"),
    ),
    Entry(
        "overflow of exp",
        "exp overflows float32 above 88.7 (float64 above 709).",
        (
            "Bound the argument: `torch.exp(x.clamp(max=80))`.",
            "Stay in logarithms: `torch.logsumexp`, `torch.log_softmax`, `F.softplus`, `torch.expm1`.",
        ),
        kinds=("inf",),
        ops=("exp", "exp2", "expm1", "sinh", "cosh"),
        operand=(0, "the argument"),
    ),
    Entry(
        "softmax over an overflowed score",
        "The scores hold +Inf, and softmax subtracts the maximum: Inf - Inf = NaN.",
        (
            "Find where the scores overflow (see the chain) and scale them: `(q * d ** -0.5) @ k.mT`.",
            "In mixed precision compute the scores in float32 or bfloat16.",
        ),
        kinds=("nan",),
        ops=_SOFTMAXES,
        when=conditions.holds_positive_infinity,
        operand=(0, "the scores' tensor"),
    ),
    Entry(
        "softmax over a fully masked row",
        "A row whose entries are all -Inf (everything masked) has no softmax: -Inf - (-Inf) = NaN.",
        (
            "Leave one position open in each row: `mask[mask.all(-1)] = False` (True means masked).",
            "Mask with a large finite number: `scores.masked_fill(mask, torch.finfo(scores.dtype).min)`.",
            "Drop empty sequences before the model. `F.scaled_dot_product_attention` with a boolean mask "
            "returns 0 for such rows.",
        ),
        kinds=("nan",),
        ops=_SOFTMAXES,
        operand=(0, "the first input"),
    ),
    Entry(
        "mask times minus infinity",
        "0 * Inf is NaN: an additive mask made by `(1 - mask) * -inf` is NaN wherever it should be 0.",
        (
            "Select, do not multiply: `scores.masked_fill(mask == 0, float('-inf'))`.",
            "Use a finite number: `(1 - mask) * torch.finfo(scores.dtype).min`.",
        ),
        kinds=("nan",),
        phases=("forward", "input"),
        ops=("mul", "multiply"),
    ),
    Entry(
        "difference of infinities",
        "Inf - Inf is NaN, and both sides held Inf.",
        (
            "Find where the Inf came from (see the chain) and keep that value finite.",
            "Mask with `torch.finfo(x.dtype).min` instead of `-inf` where masks are added up.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=("sub", "add", "rsub", "addcmul", "lerp"),
        when=conditions.holds_infinity,
    ),
)
