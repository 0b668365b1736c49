"""What usually causes a bad value, and what to do about it. Never imports torch.

The knowledge is data: tables of :class:`~anomprof.advice.entry.Entry`, the most specific first. This
file only looks up. Causes and remedies hold code between backticks.
"""

from __future__ import annotations

from collections.abc import Sequence

from anomprof.advice import (
    aftermath,
    backward,
    division,
    error,
    exponential,
    function,
    growth,
    outside,
    precision,
    reduction,
)
from anomprof.advice.case import Case
from anomprof.advice.entry import Entry
from anomprof.advice.fallback import FALLBACKS
from anomprof.findings import Advice, TensorSummary

__all__ = ["ENTRIES", "advise"]

#: All entries in the order in which they are tried.
ENTRIES: tuple[Entry, ...] = (
    *error.ENTRIES,
    *outside.ENTRIES,
    *backward.ENTRIES,
    *reduction.ENTRIES,
    *precision.ENTRIES,
    *exponential.ENTRIES,
    *division.ENTRIES,
    *function.ENTRIES,
    *growth.ENTRIES,
    *FALLBACKS,
)


def advise(
    kind: str,
    phase: str,
    op: str,
    node: str | None = None,
    *,
    inputs: Sequence[TensorSummary] = (),
    outputs: Sequence[TensorSummary] = (),
    module: str = "",
    symptom: str = "",
    code: str = "",
    message: str = "",
    by_hand: bool = False,
) -> Advice:
    """Returns the most specific advice there is for a finding.

    The arguments are the fields of :class:`~anomprof.findings.Finding` of the same names; the more are
    given, the more specific the advice. ``by_hand`` says of a backward fault that the op was run by the
    user's own Python there: a hook, or the backward of a custom function.
    """
    if phase == "backward" and (node or "").rpartition("::")[2] == "CheckpointFunctionBackward":
        phase, node = "forward", None  # the forward line that is run again there
    case = Case(kind, phase, op, node, tuple(inputs), tuple(outputs), module, symptom, code, message, by_hand)
    entry = entry_for(case)
    cause = " ".join(filter(None, (entry.cause.format(case=case), entry.observe(case))))
    return Advice(cause, (*entry.remedies, *aftermath.remedies(case)))


def entry_for(case: Case) -> Entry:
    """Returns the first entry that fits; the last one fits everything."""
    return next(entry for entry in ENTRIES if entry.fits(case))
