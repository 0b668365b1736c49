"""The trace as a mode: what watching every op costs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from anomprof.modes.mode import Mode, Proof, Seen
from anomprof.tracing.trace import Trace
from anomprof.workload import Workload


class TraceMode(Mode):
    """``anomprof.trace()``."""

    name = "trace"
    summary = "anomprof's trace: every op looked at, its module and line known"
    keeps_numbers = True
    family = "trace"
    rank = 10

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._trace: Trace | None = None

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Watches all steps of a turn."""
        with Trace(announce=False) as self._trace:
            yield

    def figures(self) -> Mapping[str, Any]:
        """Counts the forward ops whose place was noted, and what was found."""
        if self._trace is None:
            return {}
        return {"places": self._trace.places_noted, "findings": len(self._trace.findings)}

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Shows that forward ops were noted."""
        places = seen.figures.get("places", 0)
        return Proof(places > 0, f"{places} forward ops noted, {seen.figures.get('findings', 0)} findings")
