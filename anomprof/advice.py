"""What usually causes a bad value, and what to do about it, as data. Never imports torch."""

from __future__ import annotations

from anomprof.findings import Advice


def advise(kind: str, phase: str, op: str, node: str | None = None) -> Advice:
    """Returns the most specific advice for a finding's kind, phase, op and autograd node."""
    return Advice(f"{op} produced the first {kind} in the {phase} pass.", ())
