"""Advice on values that the backward pass made: slopes without bound, and gradients that overflow."""

from __future__ import annotations

from anomprof.advice import conditions
from anomprof.advice.entry import Entry

_BACKWARD = ("backward",)
_ROOTS = ("sqrt", "pow", "rsqrt", "cbrt")
_LOGS = ("log", "log2", "log10", "log1p", "xlogy", "logit")
_ARCS = ("acos", "asin", "acosh", "atanh", "erfinv")
_DIVISIONS = ("div", "reciprocal", "true_divide", "divide")
_BOTH_SIDES = "torch.where(ok, x, torch.ones_like(x))"


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "backward written by hand",
        "The backward of a custom `autograd.Function` made {case.word}: `{case.shown}` in it was asked "
        "outside its range, often a division by the norm of a gradient that is 0.",
        (
            "Guard its arithmetic like a forward pass: `g / g.norm().clamp_min(1e-12)`.",
            "Test it: `torch.autograd.gradcheck(Function.apply, inputs)` in float64, zeros included.",
        ),
        phases=_BACKWARD,
        when=conditions.written_by_hand,
    ),
    Entry(
        "communication hook in half precision",
        "A communication hook casts gradients to float16, which ends at 65504: larger ones become Inf on "
        "every rank.",
        (
            "Use the hook for bfloat16: `ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)`.",
            "Bring the loss to a sane scale (mean instead of sum, standardised targets).",
        ),
        phases=_BACKWARD,
        ops=("to_copy", "to", "copy", "half"),
        when=conditions.half_in_hook,
    ),
    Entry(
        "value from another rank",
        "The gradients of all ranks were added up, and another rank's held {case.word}.",
        (
            "Look at the other ranks' findings for this step: the origin is there.",
            "Divide by counts that are summed over ranks and never 0: `dist.all_reduce(n); loss / "
            "n.clamp_min(1)`.",
        ),
        phases=("backward", "optimizer", "forward"),
        ops=(
            "allreduce",
            "all_reduce",
            "reduce_scatter",
            "reduce_scatter_base",
            "reduce_scatter_tensor",
            "allgather",
            "all_gather",
            "all_gather_into_tensor",
            "allgather_base",
            "broadcast",
            "recv",
        ),
    ),
    Entry(
        "hook",
        "A hook on a tensor or a parameter made {case.word} out of a gradient: `{case.shown}` was asked "
        "outside its range, often a division by a norm that is 0.",
        (
            "Guard the hook's arithmetic: `grad / grad.norm().clamp_min(1e-12)`.",
            "Where a unit norm is not needed, clip after backward: `clip_grad_norm_(parameters, 1.0)`.",
        ),
        phases=_BACKWARD,
        when=conditions.in_hook,
    ),
    Entry(
        "gradient overflow in float16",
        "The gradient (times the scale of GradScaler) is beyond float16, which ends at 65504.",
        (
            "Use `torch.amp.GradScaler`, which skips such a step and lowers its scale, or bfloat16.",
            "Keep this cast and the loss in float32, and take means instead of sums.",
        ),
        kinds=("inf",),
        phases=_BACKWARD,
        ops=("to_copy", "mm", "bmm", "addmm", "matmul", "linear", "mul", "sum", "convolution", "mse_loss"),
        when=conditions.half,
    ),
    Entry(
        "gradient cast to a smaller type",
        "The gradient is cast back to the type of the forward value; float16 ends at 65504, so larger ones "
        "become Inf.",
        (
            "Lower the scale: `GradScaler(init_scale=1024.0)`, or use bfloat16 in the forward pass.",
            "Divide the loss by the number of its terms (`reduction='mean'`).",
        ),
        kinds=("inf",),
        phases=_BACKWARD,
        ops=("to_copy",),
    ),
    Entry(
        "where does not stop a root's gradient",
        "sqrt has an infinite slope at 0. The gradient that arrives is 0 (a later `torch.where`, mask or "
        "product does not use this value), and 0 * Inf is NaN: a mask after the op cannot repair it.",
        (
            f"Make the input harmless before the op: `torch.sqrt({_BOTH_SIDES})`.",
            "Then select as before: `torch.where(ok, root, 0.0)` (both are needed, the 'double where').",
            "Keep the argument above 0: `torch.sqrt(x.clamp_min(1e-12))`.",
        ),
        kinds=("nan",),
        phases=_BACKWARD,
        ops=("sqrt", "cbrt"),
    ),
    Entry(
        "infinite slope of a root",
        "sqrt has an infinite slope at 0, and the input reached 0 there.",
        (
            "Keep the argument above 0: `torch.sqrt(x.clamp_min(1e-12))` or `torch.sqrt(x + 1e-12)`.",
            "For lengths use `torch.linalg.vector_norm(x, dim=-1)`: its gradient at 0 is 0.",
            "For distances use `torch.cdist` or `F.pairwise_distance`, which handle equal points.",
        ),
        kinds=("inf",),
        phases=_BACKWARD,
        ops=("sqrt", "cbrt"),
    ),
    Entry(
        "gradient of an exponent",
        "The gradient with respect to an exponent holds log(base), which is NaN for a negative base (and "
        "-Inf at 0).",
        (
            "Keep the base positive: `torch.pow(x.clamp_min(1e-6), p)`.",
            "If the exponent is not to be learned: `torch.pow(x, p.detach())`.",
        ),
        phases=_BACKWARD,
        ops=("pow",),
        when=conditions.exponent_node,
    ),
    Entry(
        "infinite slope of a power",
        "x**p with p below 1 has an infinite slope at 0 (and is not defined for negative x); where a later "
        "mask drops the value, 0 * Inf is NaN all the same.",
        (
            "Keep the base above 0, before the power: `x.clamp_min(1e-6) ** p`.",
            f"Where a mask selects: `{_BOTH_SIDES} ** p`, then `torch.where(ok, y, 0.0)`.",
        ),
        phases=_BACKWARD,
        ops=("pow", "float_power"),
    ),
    Entry(
        "reciprocal root near zero",
        "The slope of 1/sqrt(x) is -1/2 * x**-1.5: it overflows long before the value itself does.",
        (
            "Add a floor: `torch.rsqrt(x + 1e-6)`.",
            f"Where a mask selects: `torch.rsqrt({_BOTH_SIDES})`, then `torch.where(ok, y, 0.0)`.",
        ),
        phases=_BACKWARD,
        ops=("rsqrt",),
    ),
    Entry(
        "where does not stop a logarithm's gradient",
        "log(x) has the slope 1/x. The gradient that arrives is 0 (a later `torch.where`, mask or clamp does "
        "not use the value), and 0 * Inf is NaN.",
        (
            f"Make the input harmless before the op: `torch.log({_BOTH_SIDES})`.",
            "For `p * log(p)` use `torch.xlogy(p, p.clamp_min(1e-8))`; from logits `F.log_softmax(x, dim)`.",
        ),
        kinds=("nan",),
        phases=_BACKWARD,
        ops=_LOGS,
    ),
    Entry(
        "infinite slope of a logarithm",
        "log(x) has the slope 1/x, which is infinite at 0.",
        (
            "Keep the argument above 0: `torch.log(x.clamp_min(1e-8))`.",
            "From logits take `F.log_softmax(x, dim)` or `F.logsigmoid(x)`.",
        ),
        kinds=("inf",),
        phases=_BACKWARD,
        ops=_LOGS,
    ),
    Entry(
        "infinite slope at the end of an arc function's range",
        "acos, asin and atanh have an infinite slope at -1 and 1 (acosh at 1), which cosines reach by "
        "rounding.",
        (
            "Stay inside, before the op: `torch.acos(x.clamp(-1 + 1e-6, 1 - 1e-6))` (in float16 1e-3).",
            "An angle between vectors is safer as `torch.atan2(cross.norm(), dot)`.",
        ),
        phases=_BACKWARD,
        ops=_ARCS,
    ),
    Entry(
        "atan2 at the origin",
        "atan2(y, x) has no slope where both are 0: its derivative is y/(x*x + y*y) = 0/0.",
        (
            "Move the origin: `torch.atan2(y, torch.where((x == 0) & (y == 0), 1.0, x))`.",
            "Mask before the op, not after it.",
        ),
        phases=_BACKWARD,
        ops=("atan2", "arctan2", "angle", "hypot"),
    ),
    Entry(
        "gradient of a division",
        "The slopes of a/b are 1/b and -a/b**2: with b at 0 (or so small that b**2 underflows) they are "
        "infinite, even where a later op makes the quotient harmless.",
        (
            "Keep the divisor away from 0, before the division: `a / b.clamp_min(1e-6)`.",
            "Where a mask selects: `a / torch.where(ok, b, torch.ones_like(b))`, then `torch.where(ok, q, "
            "0.0)`.",
        ),
        phases=_BACKWARD,
        ops=_DIVISIONS,
    ),
    Entry(
        "gradient of a norm",
        "The slope of a norm is x/|x|: undefined at 0, and NaN where the norm has overflowed to Inf.",
        (
            "Add a floor inside: `torch.sqrt((x * x).sum(-1) + 1e-12)`.",
            "Scale x down first, or take the norm in float32: `x.float().norm(dim=-1)`.",
        ),
        phases=_BACKWARD,
        ops=("linalg_vector_norm", "norm", "linalg_matrix_norm", "cdist", "renorm", "weight_norm_interface"),
    ),
    Entry(
        "gradient of exp",
        "The slope of exp is exp itself: where it overflowed, or nearly so, the gradient is Inf or 0 * Inf = "
        "NaN.",
        (
            "Bound the argument before: `torch.exp(x.clamp(max=80))`.",
            "Use `torch.softmax`, `torch.logsumexp` or `F.softplus` instead of exp by hand.",
        ),
        phases=_BACKWARD,
        ops=("exp", "expm1", "exp2", "sinh", "cosh", "tan"),
    ),
    Entry(
        "gradient of a masked softmax",
        "In a row that is all -Inf, softmax and logsumexp have no gradient.",
        (
            "Leave one position open in each row: `mask[mask.all(-1)] = False` (True means masked).",
            "Mask with a large finite number: `scores.masked_fill(mask, torch.finfo(scores.dtype).min)`.",
        ),
        phases=_BACKWARD,
        ops=("softmax", "log_softmax", "logsumexp", "masked_softmax", "logcumsumexp", "log_sigmoid"),
    ),
    Entry(
        "gradient of an eigendecomposition",
        "Gradients of eigenvectors and singular vectors divide by the gaps between the values: equal or zero "
        "ones (low rank, symmetric data) make Inf or NaN.",
        (
            "Use only the values where they are enough: `torch.linalg.eigvalsh(a)`, `svdvals(a)` are safe.",
            "Separate them: `a + torch.diag(torch.linspace(0, 1e-4, n))`, in float64.",
            "A matrix root or whitening needs no eigenvectors: use Newton-Schulz or `torch.linalg.cholesky`.",
        ),
        phases=_BACKWARD,
        ops=("linalg_eigh", "linalg_svd", "linalg_eig", "svd", "symeig", "eig", "linalg_qr"),
    ),
    Entry(
        "gradient through a singular matrix",
        "The gradient of an inverse, a solution or a determinant contains the inverse again, squared.",
        (
            "Add to the diagonal: `a + 1e-4 * torch.eye(n, device=a.device, dtype=a.dtype)`.",
            "Use float64 for this step.",
        ),
        phases=_BACKWARD,
        ops=(
            "linalg_inv_ex",
            "linalg_solve_ex",
            "linalg_cholesky_ex",
            "linalg_det",
            "linalg_slogdet",
            "cholesky",
            "linalg_pinv",
            "linalg_solve_triangular",
            "linalg_lu_factor_ex",
        ),
    ),
    Entry(
        "gradient of CTC",
        "A target longer than its input has no alignment: loss Inf, gradient NaN.",
        ("Drop such samples, or use `nn.CTCLoss(zero_infinity=True)`.",),
        phases=_BACKWARD,
        ops=("ctc_loss", "cudnn_ctc_loss"),
    ),
    Entry(
        "gradient of a standard deviation",
        "The unbiased variance divides by n - 1: of a single sample, value and gradient are NaN.",
        (
            "Use `x.std(dim, correction=0)`, or `torch.sqrt(x.var(dim, correction=0) + 1e-6)`.",
            "Leave out batches of one: `DataLoader(..., drop_last=True)`.",
        ),
        phases=_BACKWARD,
        ops=("std", "var", "std_mean", "var_mean"),
    ),
    Entry(
        "infinite forward value times a zero gradient",
        "The forward value of a factor is Inf; nothing used it, so the gradient that arrives is 0, and 0 * "
        "Inf is NaN.",
        (
            "Make the factor finite before this line: `x.masked_fill(~ok, 0.0)` or `torch.where(ok, x, "
            "0.0)`.",
            "A `nan_to_num`, clamp or mask after the product repairs the loss, not the gradient.",
        ),
        kinds=("nan",),
        phases=_BACKWARD,
        ops=(
            "mul",
            "mm",
            "bmm",
            "addmm",
            "matmul",
            "convolution",
            "prod",
            "cumprod",
            "dot",
            "mv",
            "addcmul",
            "addcdiv",
            "baddbmm",
        ),
    ),
    Entry(
        "exploding gradient",
        "The gradient grew beyond the type's range on its way back: many layers or time steps, each "
        "multiplying it.",
        (
            "Clip: `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`; scale the loss to about 1.",
            "Lower the learning rate, warm it up, or shorten the unrolled sequence (`h = h.detach()`).",
        ),
        kinds=("inf",),
        phases=_BACKWARD,
        ops=(
            "mul",
            "mm",
            "bmm",
            "addmm",
            "matmul",
            "convolution",
            "sum",
            "mse_loss",
            "add",
            "prod",
            "addcmul",
            "cumsum",
            "mean",
            "accumulate_grad",
            "baddbmm",
            "lstm",
            "gru",
        ),
    ),
)
