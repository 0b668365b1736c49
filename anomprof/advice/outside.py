"""Advice on values from outside forward and backward: optimizer, data, checkpoints, initial parameters."""

from __future__ import annotations

from anomprof.advice import conditions
from anomprof.advice.entry import Entry

_OPTIMIZER = ("optimizer",)
_OUTSIDE = ("input", "parameter")
_NORMS = ("norm", "linalg_vector_norm", "stack", "linalg_norm")
_STEPS = (
    "add",
    "sub",
    "mul",
    "addcdiv",
    "addcmul",
    "lerp",
    "fused_adam",
    "fused_adamw",
    "fused_sgd",
    "div",
    "copy",
)
_EMA = r"\bema\b|ema_|_ema|\.lerp_?\(|averag|shadow|\bswa|decay"


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "GradScaler collapse",
        "GradScaler found Inf in the gradients again and again and has lowered its scale towards 0: every "
        "step is skipped, and nothing is learned.",
        (
            "Find what is Inf in float16 whatever the scale: the forward pass, or an infinite slope.",
            "Use bfloat16, which needs no scaler: `torch.autocast(device_type, dtype=torch.bfloat16)`.",
            "Stop when it happens: `assert scaler.get_scale() >= 1`.",
        ),
        phases=("optimizer", "backward"),
        words=r"GradScaler|scale (fell|collapsed)|skipp",
    ),
    Entry(
        "unscaling of gradients",
        "Dividing the gradients by GradScaler's scale met Inf; the step is skipped.",
        (
            "A few skipped steps at the start are normal; repeated ones mean an overflow in float16.",
            "Call `scaler.unscale_(optimizer)` before clipping, and clip before `scaler.step(optimizer)`.",
        ),
        phases=_OPTIMIZER,
        ops=(
            "amp_foreach_non_finite_check_and_unscale",
            "amp_non_finite_check_and_unscale",
            "amp_update_scale",
        ),
    ),
    Entry(
        "norm read through clipping",
        "`clip_grad_norm_` with `max_norm=inf` multiplies all gradients by Inf over the norm; the norm has "
        "overflowed to Inf, and Inf/Inf is NaN.",
        (
            "Only read the norm: `torch.nn.utils.get_total_norm([p.grad for p in parameters])`.",
            "Bring the loss to a sane scale: standardise targets, mean instead of sum.",
        ),
        phases=_OPTIMIZER,
        code=r"clip_grad_norm_?\(.*[\s.(=\"']inf\b",
    ),
    Entry(
        "norm of finite gradients that overflows",
        "The norm of the gradients is Inf though each may be finite (squares overflow float32 at 1.8e19): "
        "the clip factor becomes 0, every gradient is set to 0, and training silently stands still.",
        (
            "Be told: `clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)`.",
            "Bring the loss to a sane scale: standardise targets, mean instead of sum.",
            "Bound elements first: `torch.nn.utils.clip_grad_value_(parameters, 1e3)`.",
        ),
        kinds=("inf",),
        phases=_OPTIMIZER,
        ops=_NORMS,
    ),
    Entry(
        "clipping by an infinite norm",
        "One Inf in one gradient makes the norm Inf and the clip factor 0: Inf * 0 is NaN there, and every "
        "other gradient becomes 0.",
        (
            "Be told: `clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)`.",
            "Skip the step: `if not torch.isfinite(norm): optimizer.zero_grad(); continue`.",
            "Find the Inf in the gradient: see the chain.",
        ),
        phases=_OPTIMIZER,
        ops=("mul", *_NORMS),
        code=r"clip|norm",
    ),
    Entry(
        "eps that float16 rounds to 0",
        "With float16 parameters Adam's eps of 1e-8 rounds to 0, and so do small squared gradients: the "
        "update is m/0 = Inf, or 0/0 = NaN.",
        (
            "Keep parameters in float32 and let `torch.autocast` choose float16 where it is safe.",
            "Give an eps that float16 holds: `torch.optim.Adam(params, eps=1e-4)`.",
        ),
        phases=_OPTIMIZER,
        ops=("addcdiv", "div", "fused_adam", "fused_adamw", "sqrt", "reciprocal"),
        when=conditions.half,
    ),
    Entry(
        "second moment overflow",
        "The squared gradient is beyond the type's range: float16 from 256 on, float32 from 1.8e19 on.",
        (
            "Clip before the step: `torch.nn.utils.clip_grad_norm_(parameters, 1.0)`.",
            "Keep the optimizer's state in float32; scale the loss to about 1.",
        ),
        kinds=("inf",),
        phases=_OPTIMIZER,
        ops=("addcmul", "pow", "square", "fused_adam", "fused_adamw"),
    ),
    Entry(
        "moving average of weights",
        "An average of weights keeps a bad value for ever: once in, it never leaves.",
        (
            "Update it only if `all(p.isfinite().all() for p in model.parameters())`.",
            "Start it from a copy of the weights (`copy.deepcopy(model)`), not from `torch.empty_like`.",
        ),
        phases=_OPTIMIZER,
        ops=("lerp", "mul", "add", "sub", "copy", "addcmul"),
        code=_EMA,
    ),
    Entry(
        "learning rate that is no number",
        "The {case.word} came in as a number: a learning rate, a weight decay, a momentum, or what was "
        "computed from them.",
        (
            "Look at it: `assert math.isfinite(scheduler.get_last_lr()[0])` after each `scheduler.step()`.",
            "Schedules divide: by a warm-up of 0 steps, by `max_steps - warmup`, or take `0 ** negative`.",
        ),
        phases=_OPTIMIZER,
        ops=_STEPS,
        when=conditions.came_as_number,
    ),
    Entry(
        "division by a gradient norm of zero",
        "The norm of the gradients is 0, and the step divides by it.",
        (
            "Add a floor: `scale = rho / (grad_norm + 1e-12)`.",
            "Skip the step when the norm is 0: nothing would be learned from it.",
        ),
        phases=_OPTIMIZER,
        ops=("div", "reciprocal", "true_divide"),
        code=r"norm|rho|scale",
    ),
    Entry(
        "division inside the optimizer's step",
        "The update divides by something that is 0 (a statistic that has seen no gradient yet, a bias "
        "correction before its first step): 0/0 is NaN, x/0 Inf.",
        (
            "Add eps below the fraction bar, outside the root: `update / (v.sqrt() + 1e-8)`.",
            "In an optimizer or average of your own count steps from 1, or skip it until the first one.",
        ),
        phases=_OPTIMIZER,
        ops=("div", "reciprocal", "addcdiv", "true_divide", "rsqrt"),
        operand=(1, "the divisor"),
    ),
    Entry(
        "update of a parameter",
        "The update itself is {case.word}: the learning rate, weight decay or momentum is no finite number, "
        "or the gradient is too large for the type.",
        (
            "Look at it: `assert math.isfinite(scheduler.get_last_lr()[0])` after each `scheduler.step()`.",
            "Clip before the step: `torch.nn.utils.clip_grad_norm_(parameters, 1.0)`.",
        ),
        phases=_OPTIMIZER,
        ops=_STEPS,
    ),
    Entry(
        "memory never initialised",
        "`torch.empty` returns whatever the memory held before, and it was read before anything was written "
        "to it.",
        (
            "Fill it first: `torch.zeros(...)`, or `nn.init.normal_(p, std=0.02)` for parameters.",
            "`nn.Parameter(torch.empty(n))` needs an `nn.init` call in `__init__`.",
        ),
        when=conditions.never_filled,
    ),
    Entry(
        "checkpoint",
        "The checkpoint already held {case.word}: it was saved after the damage was done.",
        (
            "Go back to an earlier one; before saving check `all(p.isfinite().all() for p in params)`.",
            "Load and look: `[k for k, v in torch.load(f).items() if v.is_floating_point() and not "
            "v.isfinite().all()]`.",
        ),
        phases=_OUTSIDE,
        ops=("load", "load_state_dict", "copy", "set"),
        code=r"load|resume|restore|checkpoint|ckpt|pretrained",
    ),
    Entry(
        "checkpoint, by op",
        "What was read from a file already held {case.word}.",
        (
            "Go back to an earlier one; before saving check `all(p.isfinite().all() for p in params)`.",
            "Find the entry: `[k for k, v in state.items() if v.is_floating_point() and not "
            "v.isfinite().all()]`.",
        ),
        phases=_OUTSIDE,
        ops=("load", "load_state_dict", "from_file", "set_from_file"),
    ),
    Entry(
        "data that numpy or Python made",
        "The {case.word} was there before torch saw the data: numpy or plain Python made it.",
        (
            "Stop where it is made: `np.seterr(divide='raise', invalid='raise', over='raise')`.",
            "Check it before it becomes a tensor: `assert np.isfinite(array).all()`.",
            "The mean of nothing, 0/0 and the deviation of a single value are the usual reasons.",
        ),
        phases=_OUTSIDE,
        ops=("from_numpy", "lift_fresh", "as_tensor", "asarray", "tensor", "frombuffer", "from_dlpack"),
    ),
    Entry(
        "bad sample from the loader",
        "A sample of this batch held {case.word} when the loader handed it over.",
        (
            "Find it: `bad = [i for i, s in enumerate(dataset) if not torch.isfinite(s[0]).all()]`.",
            "Repair the file, or drop the sample in `__getitem__` or `collate_fn`.",
            "Normalisation by a constant image or column (`(x - min) / (max - min)`) is the usual reason.",
        ),
        phases=("input",),
        ops=(
            "dataloader",
            "data_loader",
            "loader",
            "set",
            "stack",
            "default_collate",
            "pin_memory",
            "to_copy",
            "copy",
        ),
    ),
)
