"""What an op can do to values: create bad ones, carry them, overwrite them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anomprof.sites import op_name

# Ops whose result holds a bad value only if an operand did: they move, select or bound values.
_CARRIERS = frozenset(
    """
    _unsafe_view clone contiguous cat stack hstack vstack index index_select gather take embedding where
    relu relu_ hardtanh relu6 threshold threshold_backward hardtanh_backward leaky_relu
    max_pool2d_with_indices max_pool3d_with_indices max_pool2d_with_indices_backward adaptive_max_pool2d
    max_pool1d maximum minimum max min amax amin sort topk flip roll repeat repeat_interleave tril triu
    sigmoid tanh sin cos atan erf sign sgn neg abs round floor ceil trunc _softmax softplus hardsigmoid
    sigmoid_backward tanh_backward silu bernoulli bernoulli_ slice_backward select_backward
    unfold_backward
    """.split()
)

# Ops whose result is finite whatever the operands.
_FINITE = frozenset(
    """
    zeros ones zeros_like ones_like new_zeros new_ones zero_ zero eye arange linspace randn rand
    randn_like rand_like randint randperm uniform_ normal_ uniform normal random_ hann_window isnan isinf
    isfinite eq ne lt le gt ge logical_not argmax argmin
    """.split()
)

# Ops by which values come into torch from outside: lists and arrays of numbers, files, other processes.
_ARRIVALS = frozenset(["lift_fresh", "set_"])

_UNINITIALISED = frozenset(
    """
    empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_
    """.split()
)

# Ops that write their first operand without reading it.
_OVERWRITERS = frozenset(
    """
    copy_ fill_ zero_ set_ uniform_ normal_ random_ exponential_ bernoulli_ log_normal_ cauchy_
    geometric_
    """.split()
)

# Running statistics that these ops write though their schema does not say so: positions, then the switch's.
_BATCH_NORMS = {"native_batch_norm": (3, 4, 5), "cudnn_batch_norm": (3, 4, 5), "miopen_batch_norm": (3, 4, 5)}

# How many results of an op are its answer. The others are workings that a healthy step leaves full of -Inf,
# and in part unfilled.
_ANSWERS = {"_ctc_loss": 1, "_cudnn_ctc_loss": 1}

#: Ops that turn -Inf into something finite: an Inf that comes out of them did not come in as -Inf.
ABSORB_MINUS_INF = frozenset(
    """
    aten::exp aten::exp2 aten::expm1 aten::sigmoid aten::softplus aten::_softmax aten::relu aten::gelu
    aten::silu aten::elu aten::tanh aten::atan aten::logsumexp
    """.split()
)


# Ops whose plain numbers are operands as tensors are, as the 0 in ``x / 0``.
_ARITHMETIC = frozenset("add sub rsub mul div pow float_power fmod remainder true_divide".split())


@dataclass(frozen=True, slots=True)
class OpKind:
    """What one op does to values.

    Attributes:
        name: As ``aten::add``.
        creates: Whether its results may be bad where its operands are not.
        is_finite: Whether its results are finite whatever the operands.
        is_view: Whether its result shares memory with an operand: nothing new to look at.
        is_arrival: Whether its result comes from outside torch, so that no operand explains it.
        is_uninitialised: Whether its result is memory that nobody has filled.
        writes: Positions of the operands that it writes; -1 for those passed by name.
        write_names: Names of the written operands, in the same order.
        overwrites: Whether it writes them without reading them.
        answers: How many of its results count; None for all. The others are workings of its own.
        has_number_operands: Whether plain numbers among its operands are told as tensors are.
        switch: Position of the operand that says whether it writes at all; None where it always does.
    """

    name: str
    creates: bool
    is_finite: bool
    is_view: bool
    is_arrival: bool
    is_uninitialised: bool
    writes: tuple[int, ...]
    write_names: tuple[str, ...]
    overwrites: bool
    switch: int | None
    answers: int | None = None
    has_number_operands: bool = False

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns the tensors that a call writes."""
        if self.switch is not None and not (len(args) > self.switch and args[self.switch]):
            return []
        found: list[Any] = []
        for position, name in zip(self.writes, self.write_names, strict=True):
            value = args[position] if 0 <= position < len(args) else kwargs.get(name)
            if isinstance(value, (list, tuple)):
                found.extend(value)
            elif value is not None:
                found.append(value)
        return found


def kind_of(function: Any) -> OpKind:
    """Returns what an op does, read from its schema and the tables above."""
    name = op_name(function)
    base = name.rpartition("::")[2]
    schema = getattr(function, "_schema", None)
    arguments = list(schema.arguments) if schema is not None else []
    writes: list[tuple[int, str]] = []
    is_out = False
    for position, argument in enumerate(arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            writes.append((-1 if argument.kwarg_only else position, argument.name))
            is_out = is_out or argument.kwarg_only or argument.name == "out"
    switch = None
    if base in _BATCH_NORMS:
        *positions, switch = _BATCH_NORMS[base]
        writes = [(position, arguments[position].name) for position in positions]
    if not name.startswith("aten::"):
        return OpKind(
            name,
            bool(arguments),
            False,
            False,
            False,
            False,
            tuple(p for p, _ in writes),
            tuple(n for _, n in writes),
            False,
            None,
        )
    return OpKind(
        name=name,
        creates=base not in _CARRIERS and base not in _FINITE,
        is_finite=base in _FINITE,
        is_view=base not in _ARRIVALS
        and (
            bool(getattr(function, "is_view", False)) or base in ("detach", "alias", "_reshape_alias", "lift")
        ),
        is_arrival=base in _ARRIVALS,
        is_uninitialised=base in _UNINITIALISED,
        writes=tuple(position for position, _ in writes),
        write_names=tuple(label for _, label in writes),
        overwrites=base in _OVERWRITERS or is_out,
        switch=switch,
        answers=_ANSWERS.get(base),
        has_number_operands=base.removeprefix("_foreach_").removesuffix("_") in _ARITHMETIC,
    )
