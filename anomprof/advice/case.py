"""The facts of one finding as the tables of advice look at them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from anomprof.findings import KIND_NAMES, TensorSummary

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Case:
    """What is known about one bad value; the fields are the arguments of :func:`anomprof.advice.advise`."""

    kind: str
    phase: str
    op: str
    node: str | None = None
    inputs: tuple[TensorSummary, ...] = ()
    outputs: tuple[TensorSummary, ...] = ()
    module: str = ""
    symptom: str = ""
    code: str = ""
    message: str = ""
    by_hand: bool = False

    @property
    def word(self) -> str:
        """``NaN`` or ``Inf``."""
        return KIND_NAMES.get(self.kind, self.kind)

    @property
    def shown(self) -> str:
        """The op without the characters that would end a piece of code."""
        return self.op.replace("`", "'") or "an op"

    @property
    def dtypes(self) -> frozenset[str]:
        """Of everything that went in and came out."""
        return frozenset(summary.dtype for summary in (*self.inputs, *self.outputs))


def op_name(op: str) -> str:
    """Returns the bare name of an op: ``aten::_softmax``, ``aten._softmax.default`` are ``softmax``."""
    name = op.strip()
    name = name.rpartition("::")[2] if "::" in name else re.sub(r"^(aten|torch|prims|c10d)\.", "", name)
    return name.partition(".")[0].removeprefix("_foreach_").strip("_").lower()


def node_name(node: str | None) -> str:
    """Returns a node's name in the spelling of ops: ``LinalgSvdBackward0`` is ``linalg_svd``."""
    name = re.sub(r"Backward\d*$", "", (node or "").rpartition("::")[2])
    return _WORD_START.sub("_", name).lower()


def number(value: float) -> str:
    """Returns a value that a tensor held, as people write it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return f"{value + 0.0:.4g}"  # adding 0.0 turns "-0" into "0"
