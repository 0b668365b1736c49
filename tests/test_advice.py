"""Each entry of the tables is found by the case it is for, and what it says can be done."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from anomprof.advice import ENTRIES, advise, entry_for
from anomprof.advice.case import Case, node_name, op_name
from anomprof.findings import TensorSummary
from anomprof.report.prose import pieces

INF = float("inf")


def held(
    low: float | None, high: float | None, *, dtype: str = "float32", shape: tuple[int, ...] = (4,)
) -> Any:
    infinite = int(low == -INF) + int(high == INF)
    return (TensorSummary(shape, dtype, low, high, 0, infinite),)


NAN_NUMBER = TensorSummary((), "number", None, None, 1, 0)
ZERO_NUMBER = TensorSummary((), "number", 0.0, 0.0, 0, 0)


HALF = held(-3.0, 300.0, dtype="float16")
BFLOAT = held(-3.0, 1e38, dtype="bfloat16")
MANY_SKIPS = "GradScaler skipped 200 steps in a row."
IN_PLACE = "one of the variables needed for gradient computation has been modified by an inplace operation"

# Entry -> kind, phase, op, node, and what else is known.
CASES: dict[str, tuple[str, str, str, str | None, dict[str, Any]]] = {
    "in-place change of a leaf": (
        "error",
        "optimizer",
        "aten::sub_",
        None,
        {"message": "a leaf Variable that requires grad is being used in an in-place operation."},
    ),
    "assignment to elements of a saved tensor": (
        "error",
        "forward",
        "aten::fill_",
        None,
        {"message": IN_PLACE},
    ),
    "data that numpy or Python made": ("nan", "input", "torch.from_numpy", None, {}),
    "backward through a freed graph": (
        "error",
        "backward",
        "aten::addmm",
        "AddmmBackward0",
        {"message": "Trying to backward through the graph a second time"},
    ),
    "no graph": (
        "error",
        "backward",
        "",
        None,
        {"message": "element 0 of tensors does not require grad and does not have a grad_fn"},
    ),
    "optimizer step between two backwards": (
        "error",
        "optimizer",
        "aten::addcdiv_",
        None,
        {"message": IN_PLACE},
    ),
    "in-place change of a saved tensor": (
        "error",
        "forward",
        "aten::add_",
        "SigmoidBackward0",
        {"message": IN_PLACE},
    ),
    "change of a view": (
        "error",
        "forward",
        "aten::mul_",
        None,
        {"message": "Output 0 of UnbindBackward0 is a view and is being modified inplace."},
    ),
    "GradScaler collapse": ("inf", "optimizer", "aten::mul", None, {"message": MANY_SKIPS}),
    "unscaling of gradients": (
        "inf",
        "optimizer",
        "aten::_amp_foreach_non_finite_check_and_unscale_",
        None,
        {},
    ),
    "norm read through clipping": (
        "nan",
        "optimizer",
        "aten::mul",
        None,
        {"code": "total = clip_grad_norm_(net.parameters(), max_norm=float('inf'))"},
    ),
    "norm of finite gradients that overflows": ("inf", "optimizer", "aten::_foreach_norm", None, {}),
    "clipping by an infinite norm": (
        "nan",
        "optimizer",
        "aten::_foreach_mul_",
        None,
        {"code": "clip_grad_norm_(model.parameters(), 1.0)"},
    ),
    "eps that float16 rounds to 0": ("inf", "optimizer", "aten::addcdiv_", None, {"inputs": HALF}),
    "second moment overflow": ("inf", "optimizer", "aten::addcmul_", None, {}),
    "moving average of weights": (
        "nan",
        "optimizer",
        "aten::lerp_",
        None,
        {"code": "ema_weight.lerp_(weight, 1 - decay)"},
    ),
    "learning rate that is no number": (
        "nan",
        "optimizer",
        "aten::add_",
        None,
        {"inputs": (*held(-1.0, 1.0), NAN_NUMBER), "code": "optimizer.step()"},
    ),
    "division by a number that is 0": (
        "nan",
        "forward",
        "aten::div",
        None,
        {"inputs": (*held(0.0, 0.0), ZERO_NUMBER), "code": "return logits / temperature"},
    ),
    "weight normalisation of a filter of zeros": (
        "nan",
        "forward",
        "aten::_weight_norm_interface",
        None,
        {"inputs": held(-1.0, 1.0), "code": "h = self.conv(x)"},
    ),
    "division by a gradient norm of zero": (
        "inf",
        "optimizer",
        "aten::div",
        None,
        {"code": "scale = self.rho / grad_norm"},
    ),
    "division inside the optimizer's step": (
        "nan",
        "optimizer",
        "aten::div_",
        None,
        {"code": "optimizer.step()"},
    ),
    "update of a parameter": ("nan", "optimizer", "aten::add_", None, {}),
    "memory never initialised": ("nan", "parameter", "aten::empty.memory_format", None, {}),
    "checkpoint": (
        "nan",
        "parameter",
        "aten::copy_",
        None,
        {"code": "model.load_state_dict(torch.load(path))"},
    ),
    "checkpoint, by op": ("nan", "input", "torch.load", None, {}),
    "bad sample from the loader": ("nan", "input", "DataLoader", None, {}),
    "backward written by hand": ("nan", "backward", "aten::div", "UnitReverseBackward", {"by_hand": True}),
    "communication hook in half precision": ("inf", "backward", "aten::_to_copy", None, {"outputs": HALF}),
    "value from another rank": ("nan", "backward", "c10d::allreduce_", None, {}),
    "hook": ("nan", "backward", "aten::div", "AccumulateGrad", {"by_hand": True}),
    "gradient overflow in float16": ("inf", "backward", "aten::mm", "MmBackward0", {"outputs": HALF}),
    "gradient cast to a smaller type": ("inf", "backward", "aten::_to_copy", "ToCopyBackward0", {}),
    "where does not stop a root's gradient": ("nan", "backward", "aten::sqrt", "SqrtBackward0", {}),
    "infinite slope of a root": ("inf", "backward", "aten::sqrt", "SqrtBackward0", {}),
    "gradient of an exponent": ("nan", "backward", "aten::pow", "PowBackward1", {}),
    "infinite slope of a power": ("inf", "backward", "aten::pow", "PowBackward0", {}),
    "reciprocal root near zero": ("inf", "backward", "aten::rsqrt", "RsqrtBackward0", {}),
    "where does not stop a logarithm's gradient": ("nan", "backward", "aten::log", "LogBackward0", {}),
    "infinite slope of a logarithm": ("inf", "backward", "aten::log", "LogBackward0", {}),
    "infinite slope at the end of an arc function's range": (
        "inf",
        "backward",
        "aten::acos",
        "AcosBackward0",
        {},
    ),
    "atan2 at the origin": ("nan", "backward", "aten::atan2", "Atan2Backward0", {}),
    "gradient of a division": ("nan", "backward", "aten::div", "DivBackward0", {}),
    "gradient of a norm": ("nan", "backward", "aten::linalg_vector_norm", "LinalgVectorNormBackward0", {}),
    "gradient of exp": ("inf", "backward", "aten::exp", "ExpBackward0", {}),
    "gradient of a masked softmax": ("nan", "backward", "aten::logsumexp", "LogsumexpBackward0", {}),
    "gradient of an eigendecomposition": ("nan", "backward", "aten::_linalg_svd", "LinalgSvdBackward0", {}),
    "gradient through a singular matrix": (
        "inf",
        "backward",
        "aten::linalg_inv_ex",
        "LinalgInvExBackward0",
        {},
    ),
    "gradient of CTC": ("nan", "backward", "aten::_ctc_loss", "CtcLossBackward0", {}),
    "gradient of a standard deviation": ("nan", "backward", "aten::std", "StdBackward0", {}),
    "infinite forward value times a zero gradient": ("nan", "backward", "aten::mul", "MulBackward0", {}),
    "exploding gradient": ("inf", "backward", "aten::addmm", "AddmmBackward0", {}),
    "mean of nothing": ("nan", "forward", "aten::mean", None, {"inputs": held(None, None, shape=(0, 3))}),
    "standard deviation of one sample": ("nan", "forward", "aten::std.correction", None, {}),
    "mean that selects nothing": ("nan", "forward", "aten::mean", None, {}),
    "cross entropy with all targets ignored": ("nan", "forward", "aten::nll_loss_forward", None, {}),
    "CTC target longer than its input": ("inf", "forward", "aten::_ctc_loss", None, {}),
    "overflow in a float16 cast": ("inf", "forward", "aten::_to_copy", None, {"outputs": HALF}),
    "overflow in a float16 matrix product": ("inf", "forward", "aten::bmm", None, {"inputs": HALF * 2}),
    "overflow in a float16 sum": ("inf", "forward", "aten::sum.dim_IntList", None, {"inputs": HALF}),
    "exp in float16": ("inf", "forward", "aten::exp", None, {"inputs": HALF}),
    "softmax written by hand": ("inf", "forward", "aten::exp", None, {"code": "weights = scores.exp()"}),
    "exp of a log-variance": ("inf", "forward", "aten::exp", None, {"code": "std = (0.5 * logvar).exp()"}),
    "overflow of exp": ("inf", "forward", "aten::exp", None, {"code": "y = torch.exp(x)"}),
    "softmax over an overflowed score": (
        "nan",
        "forward",
        "aten::_softmax",
        None,
        {"inputs": held(-1.0, INF)},
    ),
    "softmax over a fully masked row": (
        "nan",
        "forward",
        "aten::_softmax",
        None,
        {"inputs": held(-INF, 3.0)},
    ),
    "mask times minus infinity": ("nan", "forward", "aten::mul", None, {}),
    "difference of infinities": ("nan", "forward", "aten::sub", None, {"inputs": held(0.0, INF)}),
    "Gaussian likelihood without a floor": (
        "inf",
        "forward",
        "aten::div",
        None,
        {"code": "nll = 0.5 * ((y - mean) ** 2 / var + var.log())"},
    ),
    "division by an eps that float16 rounds to 0": (
        "nan",
        "forward",
        "aten::div",
        None,
        {"inputs": HALF + held(0.0, 2.0, dtype="float16")},
    ),
    "division by a count": (
        "nan",
        "forward",
        "aten::div",
        None,
        {"code": "loss = (per_token * mask).sum() / mask.sum()"},
    ),
    "division by a standard deviation or a range": (
        "nan",
        "input",
        "aten::div",
        None,
        {"code": "return (x - x.min()) / (x.max() - x.min())"},
    ),
    "division by a norm": (
        "nan",
        "forward",
        "aten::div",
        None,
        {"code": "return x / x.norm(dim=-1, keepdim=True)"},
    ),
    "infinity divided by infinity": (
        "nan",
        "forward",
        "aten::div",
        None,
        {"inputs": held(0.0, INF) + held(1.0, INF), "code": "p = a / b"},
    ),
    "division by zero": ("inf", "forward", "aten::reciprocal", None, {"code": "y = 1 / x"}),
    "logarithm of a negative number": ("nan", "forward", "aten::log1p", None, {}),
    "logarithm of random numbers": ("inf", "forward", "aten::log", None, {"code": "inner = -torch.log(u)"}),
    "divergence written by hand": ("inf", "forward", "aten::log", None, {"code": "r = torch.log(p / q)"}),
    "logarithm of zero": ("inf", "forward", "aten::log", None, {}),
    "root of a negative number": ("nan", "forward", "aten::sqrt", None, {}),
    "reciprocal root of zero": ("inf", "forward", "aten::rsqrt", None, {}),
    "power of a negative base": ("nan", "forward", "aten::pow.Tensor_Scalar", None, {}),
    "power that overflows": ("inf", "forward", "aten::pow", None, {}),
    "atanh at or beyond 1": ("inf", "forward", "aten::atanh", None, {}),
    "acos or asin beyond 1": ("nan", "forward", "aten::acos", None, {}),
    "poles of special functions": ("inf", "forward", "aten::lgamma", None, {}),
    "singular matrix": ("inf", "forward", "aten::linalg_inv_ex", None, {}),
    "decomposition of a bad matrix": ("nan", "forward", "aten::_linalg_eigh", None, {}),
    "batch norm statistics": ("nan", "forward", "aten::native_batch_norm", None, {}),
    "normalisation layer": ("inf", "forward", "aten::native_layer_norm", None, {}),
    "bfloat16 overflow": ("inf", "forward", "aten::mm", None, {"inputs": BFLOAT}),
    "float16 overflow": ("inf", "forward", "aten::mul", None, {"inputs": HALF}),
    "values that grew without bound": ("inf", "forward", "aten::addmm", None, {"inputs": held(-1e30, 1e30)}),
    "infinities in a product": ("nan", "forward", "aten::mm", None, {}),
    "NaN in forward": ("nan", "forward", "mine::fused", None, {}),
    "Inf in forward": ("inf", "forward", "mine::fused", None, {}),
    "NaN in backward": ("nan", "backward", "mine::fused", "FusedBackward0", {}),
    "Inf in backward": ("inf", "backward", "mine::fused", "CompiledFunctionBackward", {}),
    "bad value in the optimizer": ("nan", "optimizer", "mine::fused", None, {}),
    "bad input": ("nan", "input", "mine::fused", None, {}),
    "bad parameter": ("nan", "parameter", "aten::mean", None, {}),
    "autograd error": ("error", "backward", "aten::mul", "MulBackward0", {}),
    "anything else": ("other", "elsewhere", "", None, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_an_entry_is_found_by_its_case(name: str) -> None:
    kind, phase, op, node, facts = CASES[name]
    assert entry_for(Case(kind, phase, op, node, **facts)).name == name
    advice = advise(kind, phase, op, node, **facts)
    assert advice.remedies
    assert "{" not in advice.cause.replace("{}", "")


def test_every_entry_has_its_case() -> None:
    assert [entry.name for entry in ENTRIES] == list(dict.fromkeys(entry.name for entry in ENTRIES))
    assert {entry.name for entry in ENTRIES} == set(CASES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_first_remedy_fits_one_line_and_all_end_like_sentences(entry: Any) -> None:
    assert len(entry.remedies[0].replace("`", "")) <= 92
    assert all(words.endswith((".", "?")) or words.endswith("`.") for words in (entry.cause, *entry.remedies))


def code_pieces() -> list[tuple[str, str]]:
    """Code in advice, with its entry; what stands for the user's names is left as it is."""
    found = []
    for entry in ENTRIES:
        for words in (entry.cause, *entry.remedies):
            found += [(entry.name, code) for code, is_code in pieces(words) if is_code and "{" not in code]
    return [(name, code) for name, code in found if not code.startswith(".")]


ROOTS = {"torch": torch, "F": F, "nn": nn}


@pytest.mark.parametrize(("name", "code"), code_pieces())
def test_code_in_advice_is_python_and_names_what_torch_has(name: str, code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        words = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else []
        if words and words[0] in ROOTS and all(word.isidentifier() for word in words):
            found: Any = ROOTS[words[0]]
            for word in words[1:]:
                found = getattr(found, word)


# What the advice says, run where the plain op fails: value and gradient stay finite.
X = [0.0, 1.0, 4.0]
REPAIRS = {
    "where does not stop a root's gradient": "torch.sqrt(torch.where(ok, x, torch.ones_like(x)))",
    "infinite slope of a root": "torch.sqrt(x.clamp_min(1e-12))",
    "infinite slope of a power": "x.clamp_min(1e-6) ** p",
    "gradient of an exponent": "torch.pow(x.clamp_min(1e-6), p)",
    "reciprocal root near zero": "torch.rsqrt(x + 1e-6)",
    "where does not stop a logarithm's gradient": "torch.log(torch.where(ok, x, torch.ones_like(x)))",
    "infinite slope of a logarithm": "torch.log(x.clamp_min(1e-8))",
    "logarithm of zero": "torch.xlogy(p, p.clamp_min(1e-8))",
    "infinite slope at the end of an arc function's range": "torch.acos(x.clamp(-1 + 1e-6, 1 - 1e-6))",
    "atan2 at the origin": "torch.atan2(y, torch.where((x == 0) & (y == 0), 1.0, x))",
    "gradient of a division": "a / b.clamp_min(1e-6)",
    "gradient of a norm": "torch.sqrt((x * x).sum(-1) + 1e-12)",
    "gradient of exp": "torch.exp(x.clamp(max=80))",
    "power of a negative base": "x.sign() * x.abs().clamp_min(1e-6) ** p",
    "atanh at or beyond 1": "torch.atanh(x.clamp(-1 + 1e-6, 1 - 1e-6))",
    "root of a negative number": "torch.sqrt(x.clamp_min(1e-12))",
}


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_works(name: str) -> None:
    code = REPAIRS[name]
    entry = next(entry for entry in ENTRIES if entry.name == name)
    assert any(f"`{code}`" in words for words in entry.remedies)
    x = torch.tensor(X, requires_grad=True)
    if name == "gradient of a norm":
        x = torch.zeros(2, 3, requires_grad=True)
    zeros = torch.zeros(3, requires_grad=True)
    scope = {"torch": torch, "x": x, "ok": x > 0, "y": zeros, "a": torch.ones(3), "b": x}
    scope["p"] = x if name == "logarithm of zero" else torch.full(x.shape, 0.5)
    value = eval(code, scope)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert all(leaf.grad is None or torch.isfinite(leaf.grad).all() for leaf in (x, zeros))


def test_advice_says_what_the_divisor_held() -> None:
    divisor = TensorSummary((16, 4), "float32", 0.0, 0.0, 0, 0)
    advice = advise("nan", "forward", "aten::div", inputs=(*held(0.0, 3.0), divisor), code="x / total")
    assert advice.cause.endswith("Here the divisor is 0 throughout.")


def test_advice_on_a_scalar_and_on_nothing() -> None:
    scalar = TensorSummary((), "float32", -0.0, -0.0, 0, 0)
    cause = advise("nan", "forward", "aten::log", inputs=(scalar,)).cause
    assert cause.endswith("Here the argument is 0.")
    empty = TensorSummary((0, 3), "float32", None, None, 0, 0)
    assert "no elements (shape [0, 3])" in advise("nan", "forward", "aten::mean", inputs=(empty,)).cause


def test_nothing_is_said_about_what_was_not_read() -> None:
    unread = TensorSummary((4,), "float32")
    assert "Here" not in advise("nan", "forward", "aten::log", inputs=(unread,)).cause
    assert "Here" not in advise("nan", "forward", "aten::log").cause


def test_in_backward_the_inputs_are_those_of_another_op_and_are_not_spoken_of() -> None:
    assert "Here" not in advise("nan", "backward", "aten::log", "LogBackward0", inputs=held(0.0, 0.0)).cause


def test_a_line_run_again_by_checkpointing_gets_the_advice_of_the_forward_pass() -> None:
    again = advise("inf", "backward", "aten::log2", "CheckpointFunctionBackward", by_hand=True)
    assert again == advise("inf", "forward", "aten::log2")


def test_damage_that_stays_gets_its_own_remedy() -> None:
    advice = advise("inf", "forward", "aten::log", symptom="buffer norm.running_mean")
    assert "reset_running_stats" in advice.remedies[-1]
    assert (
        "optimizer's state stays damaged"
        in advise("nan", "optimizer", "aten::add_", symptom="optimizer state of 0.weight").remedies[-1]
    )


def test_hostile_names_of_ops_do_not_break_the_sentence() -> None:
    cause = advise("nan", "forward", "mine::`{0}` {case.word}").cause
    assert "mine::'{0}' {case.word}" in cause


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("aten::_softmax", "softmax"),
        ("aten._softmax.default", "softmax"),
        ("aten::_foreach_add_.List", "add"),
        ("aten::div.Tensor", "div"),
        ("torch.load", "load"),
        ("DataLoader", "dataloader"),
        ("", ""),
    ],
)
def test_ops_are_known_by_their_bare_names(op: str, name: str) -> None:
    assert op_name(op) == name


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("SqrtBackward0", "sqrt"),
        ("LinalgSvdBackward0", "linalg_svd"),
        ("ToCopyBackward0", "to_copy"),
        ("torch::autograd::AccumulateGrad", "accumulate_grad"),
        (None, ""),
    ],
)
def test_nodes_are_spelled_like_ops(node: str | None, name: str) -> None:
    assert node_name(node) == name
