"""What models return in evaluation, where part of it is bad: harm once it is used."""

from __future__ import annotations

from anomprof.tracing.events import Event
from anomprof.tracing.marks import Operand
from anomprof.tracing.symptom import Symptom


class Outputs:
    """Bad outputs that wait to be used."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Event, Symptom]] = {}

    def add(self, event: Event, symptom: Symptom) -> None:
        """Notes that an event has left something bad in an output."""
        if len(self._waiting) > 100:  # never used, step after step
            self._waiting.clear()
        self._waiting[id(event)] = (event, symptom)

    def used(self, operands: list[Operand]) -> list[tuple[Event, Symptom]]:
        """Returns the outputs from which an op outside all modules had its bad operands."""
        found = []
        if self._waiting:
            for _, held, mark in operands:
                if mark is not None and held is not None and held.is_bad:
                    for source in (mark.nan, mark.inf):
                        if source is not None and id(source) in self._waiting:
                            found.append(self._waiting.pop(id(source)))
        return found
