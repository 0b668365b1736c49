"""What can be said where no entry knows the op: one for every kind and phase."""

from __future__ import annotations

from anomprof.advice.entry import Entry

FALLBACKS: tuple[Entry, ...] = (
    Entry(
        "NaN in forward",
        "`{case.shown}` made NaN of inputs without NaN: it was asked outside the range where it is defined, "
        "or met 0/0, Inf - Inf or 0 * Inf.",
        (
            "Look at the ranges of its inputs, and `clamp` them to where the op is defined.",
            "If one of them holds Inf, start where that Inf came from.",
        ),
        kinds=("nan",),
        phases=("forward",),
    ),
    Entry(
        "Inf in forward",
        "`{case.shown}` made Inf of finite inputs: a pole, or a result beyond the type's range.",
        (
            "Look at the ranges of its inputs, and `clamp` them, or scale them down.",
            "If they have grown over the steps: lower the learning rate, warm up, clip gradients.",
        ),
        kinds=("inf",),
        phases=("forward",),
    ),
    Entry(
        "NaN in backward",
        "The derivative of `{case.shown}` is infinite or undefined for the values of this step, and 0 * Inf "
        "is NaN.",
        (
            "Keep its input away from the edge of its domain, before the op: `x.clamp_min(1e-6)`.",
            "A `torch.where` or mask after the op does not help: make the input harmless before it.",
        ),
        kinds=("nan",),
        phases=("backward",),
    ),
    Entry(
        "Inf in backward",
        "The derivative of `{case.shown}` is infinite, or the gradient overflowed on its way back.",
        (
            "Keep its input away from where its slope is infinite: `x.clamp_min(1e-6)` before the op.",
            "Clip what flows back: `x.register_hook(lambda g: g.clamp(-1e3, 1e3))`; look at the loss's "
            "scale.",
        ),
        kinds=("inf",),
        phases=("backward",),
    ),
    Entry(
        "bad value in the optimizer",
        "`{case.shown}` made {case.word} between backward and the next forward: from a hyperparameter, the "
        "optimizer's state, or arithmetic on gradients.",
        (
            "Print the learning rate and the largest gradient just before `optimizer.step()`.",
            "Clip with `clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)` to stop at once.",
        ),
        phases=("optimizer",),
    ),
    Entry(
        "bad input",
        "The data held {case.word} before the model saw it.",
        (
            "Check each sample when it is loaded: `assert torch.isfinite(x).all(), path`.",
            "Repair or drop it: `torch.nan_to_num(x)` hides it, a filter in the data set removes it.",
        ),
        phases=("input",),
    ),
    Entry(
        "bad parameter",
        "A parameter or buffer held {case.word} before the first step.",
        (
            "Look for it: `[n for n, p in model.named_parameters() if not p.isfinite().all()]`.",
            "Check how it is initialised: `torch.empty` needs `nn.init`, and a fan of 0 divides by 0.",
        ),
        phases=("parameter",),
    ),
    Entry(
        "autograd error",
        "Autograd could not use what was saved for the backward pass.",
        (
            "Write out of place at this line: `x = x + y` instead of `x += y`.",
            "Save a copy before it is changed: `x.clone()`.",
        ),
        kinds=("error",),
    ),
    Entry(
        "anything else",
        "`{case.shown}` is where it began.",
        ("Look at the ranges of its inputs and at the source line.",),
        kinds=(),
    ),
)
