"""Ops that go wrong in the same way, by their bare names."""

from __future__ import annotations

#: Phases in which ordinary arithmetic runs: it goes wrong in the same ways in all of them.
COMPUTED = ("forward", "input", "optimizer")

DIVISIONS = ("div", "true_divide", "divide", "floor_divide", "reciprocal")
LOGS = ("log", "log2", "log10", "log1p", "logit", "xlogy", "special_xlog1py")
PRODUCTS = (
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "matmul", "linear", "dot", "mv", "einsum",
    "convolution", "conv1d", "conv2d", "conv3d", "convolution_overrideable", "mkldnn_convolution",
    "scaled_dot_product_attention", "addmv",
)  # fmt: skip
SUMS = ("sum", "cumsum", "mean", "norm", "linalg_vector_norm", "var", "std", "var_mean", "logcumsumexp")
