"""One row of the tables of advice: which cases it is for, the cause, and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from anomprof.advice.case import Case, node_name, number, op_name
from anomprof.findings import TensorSummary


@dataclass(frozen=True)
class Entry:
    """What is known about one way to make a bad value; an empty condition holds always.

    Attributes:
        name: For people who look for it; unique.
        cause: A sentence or two; ``{case.word}`` and ``{case.shown}`` stand for NaN or Inf and the op.
        remedies: What to do, the best first, the first short enough for one line of a terminal.
        kinds: Which kinds of finding it is for.
        phases: Which phases.
        ops: Bare names of ops (see :func:`~anomprof.advice.case.op_name`). In the backward phase the
            node's name counts as well.
        code: Pattern to be found in the source line, in any case of letters.
        words: Pattern to be found in the message or the symptom.
        when: What the case must look like besides.
        operand: Which input the cause is about, and what to call it; the advice then tells its range.
    """

    name: str
    cause: str
    remedies: tuple[str, ...]
    kinds: tuple[str, ...] = ("nan", "inf")
    phases: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    code: str = ""
    words: str = ""
    when: Callable[[Case], bool] | None = None
    operand: tuple[int, str] | None = None

    def fits(self, case: Case) -> bool:
        """Whether every condition holds."""
        return (
            (not self.kinds or case.kind in self.kinds)
            and (not self.phases or case.phase in self.phases)
            and (not self.ops or not self._names(case).isdisjoint(self.ops))
            and (not self.code or re.search(self.code, case.code, re.IGNORECASE) is not None)
            and (not self.words or re.search(self.words, f"{case.message}\n{case.symptom}") is not None)
            and (self.when is None or self.when(case))
        )

    def observe(self, case: Case) -> str:
        """Returns what the summaries show about the operand; nothing where they show nothing."""
        if self.operand is None or case.phase == "backward":  # there, inputs are those of another op
            return ""
        index, name = self.operand
        if index >= len(case.inputs):
            return ""
        return _observation(name, case.inputs[index])

    @staticmethod
    def _names(case: Case) -> set[str]:
        return {op_name(case.op), node_name(case.node)} - {""}


def _observation(name: str, summary: TensorSummary) -> str:
    low, high = summary.min, summary.max
    if 0 in summary.shape:
        return f"Here {name} has no elements (shape {list(summary.shape)})."
    if low is None or high is None or math.isnan(low):
        return ""
    if low == high:
        return f"Here {name} is {number(low)}{' throughout' if summary.shape else ''}."
    return f"Here {name} ranges from {number(low)} to {number(high)}."
