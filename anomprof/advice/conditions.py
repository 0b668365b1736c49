"""What a case must look like for some entries of the tables."""

from __future__ import annotations

import re

from anomprof.advice.case import Case, op_name


def half(case: Case) -> bool:
    """Whether float16 went in or came out."""
    return "float16" in case.dtypes


def bfloat(case: Case) -> bool:
    """Whether bfloat16 went in or came out."""
    return "bfloat16" in case.dtypes


def half_divisor(case: Case) -> bool:
    """Whether the divisor is float16 and reaches 0."""
    return half(case) and len(case.inputs) > 1 and case.inputs[1].min == 0


def empty(case: Case) -> bool:
    """Whether something without elements went in."""
    return any(0 in summary.shape for summary in case.inputs)


def holds_infinity(case: Case) -> bool:
    """Whether something that holds Inf or -Inf went in."""
    infinite = (float("inf"), float("-inf"))
    return any(summary.inf or summary.min in infinite or summary.max in infinite for summary in case.inputs)


def holds_positive_infinity(case: Case) -> bool:
    """Whether something that holds +Inf went in."""
    return any(summary.max == float("inf") for summary in case.inputs)


def came_as_number(case: Case) -> bool:
    """Whether a plain number that went in is NaN or Inf."""
    return any(summary.dtype == "number" and (summary.nan or summary.inf) for summary in case.inputs)


def divides_by_number_zero(case: Case) -> bool:
    """Whether a plain number is the divisor, and is 0."""
    return len(case.inputs) > 1 and case.inputs[1].dtype == "number" and case.inputs[1].min == 0


def divides_by_zero(case: Case) -> bool:
    """Whether a division met a divisor that reaches 0."""
    position = {"div": 1, "true_divide": 1, "addcdiv": 1, "reciprocal": 0}.get(op_name(case.op))
    if position is None or position >= len(case.inputs):
        return False
    low, high = case.inputs[position].min, case.inputs[position].max
    return low is not None and high is not None and low <= 0 <= high


def written_by_hand(case: Case) -> bool:
    """Whether the node is a user's ``autograd.Function``: the names of torch's own nodes end in a digit."""
    pattern = r"(?!CompiledFunction|CheckpointFunction|AOTDispatch)\w+Backward"
    return re.fullmatch(pattern, case.node or "") is not None


def in_hook(case: Case) -> bool:
    """Whether a hook of the user ran in backward."""
    return case.node is None or case.by_hand


def half_in_hook(case: Case) -> bool:
    """Whether a hook handled float16."""
    return in_hook(case) and half(case)


def never_filled(case: Case) -> bool:
    """Whether the value is what memory held before anybody wrote to it."""
    made = {
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "empty_permuted",
        "new_empty_strided",
        "resize",
    }
    return op_name(case.op) in made or "initialis" in case.message


def exponent_node(case: Case) -> bool:
    """Whether the node is that of a power whose exponent is a tensor."""
    return case.node == "PowBackward1"
