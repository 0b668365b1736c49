"""Advice on functions that were asked outside the range where they are defined."""

from __future__ import annotations

from anomprof.advice import families
from anomprof.advice.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "logarithm of a negative number",
        "The logarithm of a negative number is NaN.",
        (
            "Make the argument positive: `torch.log(x.clamp_min(1e-8))` or `torch.log(F.softplus(x))`.",
            "Is it a probability? Then compute its logarithm directly: `F.log_softmax`, `F.logsigmoid`.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=families.LOGS,
        operand=(0, "the argument"),
    ),
    Entry(
        "logarithm of random numbers",
        "`torch.rand` can return exactly 0 (in float16 often), and the logarithm of 0 is -Inf.",
        (
            "Keep the sample above 0: `torch.log(u.clamp_min(torch.finfo(u.dtype).tiny))`.",
            "For Gumbel noise use `F.gumbel_softmax(logits)`, or exponential samples: `x.exponential_()`.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=families.LOGS,
        code=r"\bu\b|rand|unif|gumbel|noise",
        operand=(0, "the argument"),
    ),
    Entry(
        "divergence written by hand",
        "The logarithm of a ratio is -Inf where the numerator is 0 and Inf where the denominator is.",
        (
            "Use `F.kl_div(log_q, p, reduction='batchmean')`, which takes 0 * log(0) for 0.",
            "By hand, with logarithms from the logits: `torch.xlogy(p, p.clamp_min(1e-8)) - p * log_q`.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=families.LOGS,
        code=r"log\w*\([^)]*/|\bkl\b|diverg",
        operand=(0, "the argument"),
    ),
    Entry(
        "logarithm of zero",
        "The logarithm of 0 is -Inf. Probabilities reach 0 by underflow: softmax and sigmoid do in float32.",
        (
            "Compute the logarithm directly: `F.log_softmax(x, dim)` or `F.logsigmoid(x)`.",
            "Keep the argument away from 0: `torch.log(x.clamp_min(1e-8))`.",
            "For `p * log(p)` use `torch.xlogy(p, p.clamp_min(1e-8))`, which is 0 at 0, its gradient finite.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=families.LOGS,
        operand=(0, "the argument"),
    ),
    Entry(
        "root of a negative number",
        "The root of a negative number is NaN. Differences such as `E[x**2] - E[x]**2` fall below 0 by "
        "rounding.",
        (
            "Keep the argument at 0 or above: `torch.sqrt(x.clamp_min(1e-12))`.",
            "For variances use `torch.var`, for distances `torch.cdist` or `torch.linalg.vector_norm`.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=("sqrt", "rsqrt"),
        operand=(0, "the argument"),
    ),
    Entry(
        "reciprocal root of zero",
        "1/sqrt(0) is Inf.",
        (
            "Add a floor: `torch.rsqrt(x + 1e-6)`.",
            "For a graph's degrees: `deg.clamp_min(1).rsqrt()`, or set the result to 0 with `torch.where`.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=("rsqrt",),
        operand=(0, "the argument"),
    ),
    Entry(
        "power of a negative base",
        "A negative number to a power that is no integer is NaN.",
        (
            "Keep the base positive: `x.clamp_min(1e-6) ** p`.",
            "Keep the sign apart: `x.sign() * x.abs().clamp_min(1e-6) ** p`.",
        ),
        kinds=("nan",),
        phases=families.COMPUTED,
        ops=("pow", "float_power"),
        operand=(0, "the base"),
    ),
    Entry(
        "power that overflows",
        "The power is beyond the range of the type, or 0 was taken to a negative power.",
        (
            "Bound the base: `x.clamp(1e-6, limit) ** p`.",
            "Compute in logarithms: `torch.exp(p * torch.log(x.clamp_min(1e-6)))` with a bounded exponent.",
        ),
        kinds=("inf",),
        phases=families.COMPUTED,
        ops=("pow", "float_power", "square", "linalg_matrix_power"),
        operand=(0, "the base"),
    ),
    Entry(
        "atanh at or beyond 1",
        "atanh is defined between -1 and 1 and infinite at both; rounding alone reaches 1.",
        (
            "Stay inside: `torch.atanh(x.clamp(-1 + 1e-6, 1 - 1e-6))` (in float16 1e-3).",
            "For Poincare balls project back first: `x * (1 - 1e-5) / norm.clamp_min(1)`.",
        ),
        ops=("atanh", "erfinv", "special_ndtri", "log_ndtr"),
        operand=(0, "the argument"),
    ),
    Entry(
        "acos or asin beyond 1",
        "acos and asin are defined from -1 to 1; a cosine exceeds 1 by rounding.",
        (
            "Stay inside, which keeps the slope finite too: `torch.acos(x.clamp(-1 + 1e-6, 1 - 1e-6))`.",
            "An angle between vectors is safer as `torch.atan2(cross.norm(), dot)`.",
        ),
        ops=("acos", "asin", "acosh"),
        operand=(0, "the argument"),
    ),
    Entry(
        "poles of special functions",
        "The function has a pole where it was asked.",
        ("Keep the argument away from it: `x.clamp_min(1e-6)`.",),
        ops=("lgamma", "digamma", "polygamma", "mvlgamma", "tan", "zeta"),
        operand=(0, "the argument"),
    ),
    Entry(
        "singular matrix",
        "The matrix is singular or nearly so.",
        (
            "Add to the diagonal: `a + 1e-6 * torch.eye(n, device=a.device, dtype=a.dtype)`.",
            "Use float64 for this step, or `torch.linalg.lstsq` / `torch.linalg.pinv` instead of an inverse.",
        ),
        ops=(
            "linalg_inv_ex",
            "linalg_inv",
            "inverse",
            "linalg_solve_ex",
            "linalg_solve",
            "linalg_cholesky_ex",
            "linalg_cholesky",
            "cholesky",
            "cholesky_inverse",
            "linalg_det",
            "linalg_slogdet",
            "logdet",
            "linalg_lu_factor_ex",
            "triangular_solve",
            "linalg_solve_triangular",
            "linalg_pinv",
        ),
        operand=(0, "the matrix"),
    ),
    Entry(
        "decomposition of a bad matrix",
        "The decomposition did not converge, or its input is too large or badly scaled.",
        (
            "Scale the matrix to about 1 and add `1e-6 * torch.eye(n)` before decomposing it.",
            "Use float64 for this step: `torch.linalg.eigh(a.double())`.",
        ),
        ops=("linalg_eigh", "linalg_svd", "linalg_eig", "linalg_qr", "svd", "linalg_eigvalsh"),
        operand=(0, "the matrix"),
    ),
)
