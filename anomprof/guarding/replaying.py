"""Does a bad step again, under the trace, and leaves everything as it was."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from anomprof.findings import Finding
from anomprof.guarding import unexplained
from anomprof.guarding.buffers import Buffers
from anomprof.guarding.performance import Performance, repeat
from anomprof.guarding.preserved import Preserved, silence
from anomprof.guarding.tape import Captured, Entry, Tape, slots_in
from anomprof.guarding.update import repeat_update
from anomprof.replay import digest
from anomprof.sites import (
    without_compiled_code,
    without_modes,
    without_overrides,
    without_user_functions,
    without_user_modes,
)
from anomprof.tracing.attachment import Attachment
from anomprof.tracing.frames import Point
from anomprof.tracing.tracer import Tracer


@dataclass(slots=True)
class Trip:
    """Why a step counts as bad.

    Attributes:
        what: ``loss``, ``gradient``, ``update``, ``output``, ``written``, ``error``; ``zero`` and ``scaler``
            are only reasons to look.
        points: The user's frames at which it was noticed.
        values: What the loss was.
        tensors: What is bad: gradients, buffers or parameters.
    """

    what: str
    points: tuple[Point, ...] = ()
    values: Sequence[float] = ()
    tensors: Sequence[torch.Tensor] = ()
    optimizer: Any = None
    module: nn.Module | None = None
    error: BaseException | None = None
    scale: float = 0.0

    @property
    def is_harm(self) -> bool:
        """Whether something is bad for certain."""
        return self.what not in ("zero", "scaler", "error")


@dataclass(slots=True)
class Outcome:
    """What one repetition led to.

    Attributes:
        findings: New ones.
        repeated: Whether a known finding came up again.
        bits: Digest of the gradients, or of what the last call returned.
        doubts: Why it may have been different from the first time.
    """

    findings: list[Finding] = field(default_factory=list)
    repeated: bool = False
    bits: str = ""
    doubts: list[str] = field(default_factory=list)


class Replay:
    """Repeats what is on a tape.

    Args:
        tracer: Follows the values of the repetition.
        buffers: As they were when the step began.
    """

    def __init__(self, tracer: Tracer, buffers: Buffers) -> None:
        self._tracer = tracer
        self._buffers = buffers
        self._performance = Performance()
        self.is_running = False
        self.found: list[Finding] = []
        self.attachment: Attachment | None = None
        tracer.frames.stand_in(repeat.__code__, lambda: self._performance.points)

    @property
    def points(self) -> tuple[Point, ...]:
        """The user's frames that made the call which is being repeated."""
        return self._performance.points

    def run(self, tape: Tape, trip: Trip, steps_then: dict[str, Any]) -> list[Finding]:
        """Returns what the repetition of a bad step shows.

        Args:
            tape: The calls of the step.
            trip: Why it is bad.
            steps_then: State of the step counter when the tape was begun.
        """
        self.is_running = True
        entries = list(tape.entries)
        if trip.what == "error":  # autograd may object to a change that an earlier step made
            known = {id(entry) for entry in tape.previous}
            entries = [*tape.previous, *(entry for entry in entries if id(entry) not in known)]
        tracer = self._tracer
        steps_now = tracer.steps.state()
        scaled = tracer.scaling.is_scaled
        try:
            with without_modes(), without_overrides():
                if trip.what == "update":
                    preserved = Preserved(tracer.stakes.roots, ())
                else:
                    originals = [*tape.originals.values()]
                    if trip.what == "written":
                        originals += [(tensor, tensor.detach().clone()) for tensor in trip.tensors]
                    preserved = Preserved(
                        tracer.stakes.roots,
                        self._leaves(entries),
                        tape.flags.values(),
                        originals,
                        {generator for entry in entries for generator, _ in entry.generators},
                    )
            try:
                if trip.what == "update":
                    first = self._under_trace(
                        trip, lambda: repeat_update(self._performance, trip), preserved, steps_now
                    )
                else:
                    first = self._under_trace(
                        trip, lambda: self._play(entries), preserved, steps_then, scaled=scaled
                    )
                second = None
                if first.findings or (trip.is_harm and not first.repeated):
                    second = self._plainly(entries, preserved) if trip.what != "update" else None
            finally:
                with without_modes(), without_overrides():
                    preserved.restore()
                tracer.steps.go_to(steps_now)
                tracer.scaling.is_scaled = scaled
            return self._conclusion(trip, first, second)
        finally:
            self.is_running = False

    def _conclusion(self, trip: Trip, first: Outcome, second: Outcome | None) -> list[Finding]:
        tracer = self._tracer
        if first.findings:
            verdict = "not checked"
            if second is not None:
                verdict = "deterministic" if second.bits == first.bits else "not deterministic"
            revised = [replace(finding, reproducibility=verdict) for finding in first.findings]
            for old, new in zip(first.findings, revised, strict=True):
                tracer.ledger.revise(old, new)
            return revised
        if first.repeated or not trip.is_harm:
            return []
        finding = unexplained.finding(tracer, trip, first.doubts)
        self.found = []
        tracer.ledger.keep(finding)
        return self.found

    def _under_trace(
        self, trip: Trip, work: Any, preserved: Preserved, steps: dict[str, Any], *, scaled: bool = False
    ) -> Outcome:
        tracer = self._tracer
        outcome = Outcome()
        self.found = []
        before = tracer.ledger.reports
        marks = dict(tracer.marks.by_key)
        with self._alone(preserved):
            tracer.steps.go_to(steps)
            tracer.scaling.is_scaled = scaled
            tracer.rests = False
            self.attachment = attachment = Attachment.of(tracer)
            try:
                work()
                if trip.what == "gradient" and tracer.ledger.reports == before:
                    tracer.look_at_gradients(preserved.leaves())
            except Exception as error:
                if not self.found:
                    outcome.doubts.append(f"{type(error).__name__}: {error}")
            finally:
                tracer.catch_up()
                attachment.remove()
                self.attachment = None
            outcome.doubts += self._performance.doubts
            outcome.bits = self._bits(preserved)
        outcome.findings, self.found = self.found, []
        outcome.repeated = tracer.ledger.reports > before
        tracer.marks.by_key = {
            key: mark
            for key, mark in tracer.marks.by_key.items()
            if key in marks and not mark.reference.is_freed
        }
        return outcome

    def _plainly(self, entries: list[Entry], preserved: Preserved) -> Outcome:
        outcome = Outcome()
        with self._alone(preserved):
            with contextlib.suppress(Exception):
                self._play(entries)
            outcome.bits = self._bits(preserved)
        return outcome

    @contextlib.contextmanager
    def _alone(self, preserved: Preserved) -> Iterator[None]:
        with (
            silence(),
            warnings.catch_warnings(),
            without_compiled_code(),
            without_user_modes(),
            without_user_functions(),
        ):
            warnings.simplefilter("ignore")
            with without_modes(), without_overrides():
                preserved.begin()
                self._buffers.restore()
            yield

    def _play(self, entries: list[Entry]) -> None:
        self._performance = Performance()
        self._performance.play(entries)

    def _bits(self, preserved: Preserved) -> str:
        with without_modes(), without_overrides():
            return digest([*preserved.gradients(), *self._performance.last()])

    def _leaves(self, entries: list[Entry]) -> list[torch.Tensor]:
        tracer = self._tracer
        leaves = list(tracer.stakes.parameters())
        for entry in entries:
            for slot in slots_in((entry.args, entry.kwargs)):
                if isinstance(slot, Captured) and slot.tensor.requires_grad and slot.tensor.is_leaf:
                    leaves.append(slot.tensor)
        return leaves
