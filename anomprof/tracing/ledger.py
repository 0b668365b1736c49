"""What a run has shown so far: findings, notes, and bad values of which nothing came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anomprof.findings import Finding, Note
from anomprof.tracing.events import Event
from anomprof.tracing.frames import Point
from anomprof.tracing.narrator import Narrator
from anomprof.tracing.steps import Moment
from anomprof.tracing.symptom import Symptom

_MOST_FINDINGS = 20
_MOST_HARMLESS = 20  # lines whose bad values harmed nothing


@dataclass(slots=True)
class _Harmless:
    event: Event
    last: Moment
    times: int = 1
    is_read: bool = False


class Ledger:
    """Keeps each thing once.

    Args:
        narrator: Writes the findings.
        on_finding: Called with each new finding the moment it is made.

    Attributes:
        reports: How often an origin was found to have done harm.
    """

    def __init__(self, narrator: Narrator, on_finding: Callable[[Finding], None]) -> None:
        self._narrator = narrator
        self._on_finding = on_finding
        self._findings: dict[Any, Finding] = {}
        self._notes: dict[str, Note] = {}
        self._harmless: dict[tuple[Point, ...], _Harmless] = {}
        self._harmful: set[tuple[Point, ...]] = set()
        self._harmed: tuple[Moment, ...] = ()
        self._left_out = 0
        self.reports = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In the order in which they were made."""
        return tuple(self._findings.values())

    @property
    def notes(self) -> tuple[Note, ...]:
        """In the order in which they were made."""
        return tuple(self._notes.values())

    def note(self, what: str, step: int | None) -> None:
        """Keeps something worth knowing."""
        known = self._notes.get(what)
        self._notes[what] = Note(what, step, 1) if known is None else Note(what, known.step, known.times + 1)

    def report(self, origin: Event, event: Event, symptom: Symptom) -> None:
        """An origin has done harm, which was noticed through ``event``: makes it a finding."""
        self.reports += 1
        self.settle(origin)
        self._harmed = (origin.moment, event.moment)
        # What else went bad in such a step may have had a part in it.
        self._harmless = {key: held for key, held in self._harmless.items() if not self._is_harmed(held.last)}
        line = _line(origin)
        key = (origin.node.op if origin.node else origin.op, origin.phase, line)
        known = self._findings.get(key)
        if known is not None:
            self._findings[key] = self._narrator.repeated(known, event)
            return
        if origin.phase == "backward" and any(
            other[-1] == line and finding.phase == "forward" for other, finding in self._findings.items()
        ):
            return  # the line went wrong in forward already: its own backward adds nothing
        if len(self._findings) >= _MOST_FINDINGS:
            self.note("more origins than are shown: only the first ones were kept", None)
            return
        self._keep(key, self._narrator.finding(origin, event, symptom))

    def keep(self, finding: Finding) -> None:
        """Keeps a finding that was made elsewhere."""
        self._keep((finding.kind, finding.phase, (finding.file, finding.line)), finding)

    def revise(self, old: Finding, new: Finding) -> None:
        """Puts a finding of which more is known in the place of another."""
        for key, held in self._findings.items():
            if held is old:
                self._findings[key] = new

    def doubt(self, origin: Event) -> None:
        """A bad value has begun; whether it will harm anything is open."""
        if self._is_harmed(origin.moment):
            return
        key = _line(origin)
        known = self._harmless.get(key)
        if known is not None:
            if not known.last.is_same_step(origin.moment):
                known.times, known.last = known.times + 1, origin.moment
        elif key not in self._harmful:
            if len(self._harmless) < _MOST_HARMLESS:
                self._harmless[key] = _Harmless(origin, origin.moment)
            else:
                self._left_out += 1

    def note_read(self, event: Event) -> None:
        """The script has read a bad number, perhaps to decide something by it."""
        for origin in event.origins:
            if (known := self._harmless.get(_line(origin))) is not None:
                known.is_read = True

    def settle(self, origin: Event) -> None:
        """It has harmed something, or was answered for: by a GradScaler that skipped the update."""
        key = _line(origin)
        self._harmful.add(key)
        self._harmless.pop(key, None)

    def close(self) -> None:
        """Says of what is still in doubt that it harmed nothing."""
        for held in self._harmless.values():
            what = self._narrator.harmless(held.event, is_read=held.is_read)
            self._notes[what] = Note(what, self._narrator.step_of(held.event.moment), held.times)
        if self._left_out:
            what = "More lines made bad values that harmed nothing: only the first ones were kept"
            self._notes[what] = Note(what)

    def _is_harmed(self, moment: Moment) -> bool:
        return any(moment.is_same_step(harmed) for harmed in self._harmed)

    def _keep(self, key: Any, finding: Finding) -> None:
        if key not in self._findings:
            self._findings[key] = finding
            self._on_finding(finding)


def _line(origin: Event) -> tuple[Point, ...]:
    return tuple(origin.place.all_points()[:1])
