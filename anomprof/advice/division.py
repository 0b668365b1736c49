"""Advice on divisions: by counts, norms and deviations that are 0."""

from __future__ import annotations

from anomprof.advice import conditions, families
from anomprof.advice.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "division by a number that is 0",
        "The divisor is a plain number, and it is 0: a counter, a weight or a schedule that begins there.",
        (
            "Count from 1, or divide by `max(count, 1)`.",
            "Print it together with the step; a schedule can be kept from 0 by `max(value, 1e-6)`.",
        ),
        phases=("forward", "input"),
        ops=families.DIVISIONS,
        when=conditions.divides_by_number_zero,
    ),
    Entry(
        "weight normalisation of a filter of zeros",
        "Weight normalisation divides each filter by its norm, and a filter that is all zeros (pruned, or "
        "initialised so) has none: 0/0.",
        (
            "Prune or zero the magnitude (`parametrizations.weight.original0`), not the direction.",
            "Start the direction from random numbers, or remove the parametrisation before pruning.",
        ),
        kinds=("nan",),
        phases=("forward",),
        ops=("weight_norm_interface", "weight_norm"),
    ),
    Entry(
        "Gaussian likelihood without a floor",
        "A Gaussian likelihood divides by the variance and takes its logarithm: at variance 0 both are "
        "infinite.",
        (
            "Use `F.gaussian_nll_loss(mean, target, var, eps=1e-6)`, which keeps the variance away from 0.",
            "By hand: `var = F.softplus(raw) + 1e-6`.",
        ),
        phases=("forward",),
        ops=(*families.DIVISIONS, *families.LOGS),
        code=r"\bvar\b|variance|sigma|log_?prob|nll",
        operand=(1, "the divisor"),
    ),
    Entry(
        "division by an eps that float16 rounds to 0",
        "float16 has no positive number below 6e-8: an eps of 1e-8 or 1e-12 is 0 there, and so is a small "
        "norm.",
        (
            "Divide in float32: `x / x.float().norm(dim=-1, keepdim=True).clamp_min(1e-6)`.",
            "Give an eps that float16 can hold: `F.normalize(x, eps=1e-4)`.",
        ),
        phases=("forward", "input"),
        ops=families.DIVISIONS,
        when=conditions.half_divisor,
        operand=(1, "the divisor"),
    ),
    Entry(
        "division by a count",
        "The count or sum below the fraction bar is 0: nothing was selected, and 0/0 is NaN, x/0 is Inf.",
        (
            "Keep the count above 0: `total / count.clamp_min(1)`.",
            "Skip the batch before the forward pass where its mask selects nothing.",
        ),
        phases=families.COMPUTED,
        ops=families.DIVISIONS,
        code=r"/\s*\(?\s*[\w.]*(mask|count|num|n_|\blen|total|weight|valid|denom|size|support)|/.*\.sum\(",
        operand=(1, "the divisor"),
    ),
    Entry(
        "division by a standard deviation or a range",
        "The data is constant, so its standard deviation (or its range) is 0, and so is the divisor.",
        (
            "Add a floor: `(x - mean) / (std + 1e-6)`, or `(x - low) / (high - low).clamp_min(1e-6)`.",
            "A standard deviation of one sample is NaN; `x.std(correction=0)` gives 0 there.",
        ),
        phases=families.COMPUTED,
        ops=families.DIVISIONS,
        code=r"/.*(std|dev\b|sigma|max|min|span|range|high|low\b|\bhi\b|\blo\b)",
        operand=(1, "the divisor"),
    ),
    Entry(
        "division by a norm",
        "A vector of zeros has norm 0, and 0/0 is NaN.",
        (
            "Use `F.normalize(x, dim=-1, eps=1e-6)`, or divide by `norm.clamp_min(1e-6)`.",
            "`F.cosine_similarity` has the floor built in.",
        ),
        phases=families.COMPUTED,
        ops=families.DIVISIONS,
        code=r"norm|/.*(length\b|magnitude)",
        operand=(1, "the divisor"),
    ),
    Entry(
        "infinity divided by infinity",
        "Inf/Inf is NaN: both sides have overflowed.",
        (
            "Find where the Inf came from (see the chain) and keep that value finite.",
            "A ratio of exponentials is a softmax: `torch.softmax(x, dim)`.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=families.DIVISIONS,
        when=conditions.holds_positive_infinity,
        operand=(1, "the divisor"),
    ),
    Entry(
        "division by zero",
        "Something was divided by 0, or by a number so small that the quotient overflows.",
        (
            "Keep the divisor away from 0: `a / b.clamp_min(1e-6)` (for either sign: `torch.where`).",
            "Ask whether the divisor should be 0 at all: print it, or stop with `assert (b != 0).all()`.",
        ),
        phases=families.COMPUTED,
        ops=(*families.DIVISIONS, "addcdiv", "remainder", "fmod"),
        operand=(1, "the divisor"),
    ),
)
