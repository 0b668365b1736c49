"""The guard on an unmodified script: a trace until training begins, and then a look per step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from anomprof.findings import Finding, Findings, Note
from anomprof.guarding.hooks import Hooks
from anomprof.guarding.sentinel import Sentinel
from anomprof.tracing.attachment import Attachment
from anomprof.tracing.tracer import Tracer


class GuardAttachment:
    """Watches a script from its first line.

    What is made before the first model is called (parameters, loaded weights, data) is traced, because it
    cannot be made again; from then on the guard looks on.

    Args:
        tell: Called with each finding.
        complain: Called with one sentence when something fails in the guard itself.
        own_code: Returns files and folders of the user's code.
        on_bad: ``stop``, ``skip`` or ``continue``.
    """

    def __init__(
        self,
        tell: Callable[[Finding], None],
        complain: Callable[[str], None],
        own_code: Callable[[], tuple[str, ...]] = tuple,
        *,
        on_bad: str = "continue",
    ) -> None:
        self._tell = tell
        self.tracer = Tracer(self._on_finding, complain, (), own_code)
        self.sentinel = Sentinel(self.tracer, on_bad, tell)
        self._hooks = Hooks(self.sentinel, self._begin)
        self._start: Attachment | None = Attachment.of(self.tracer)

    def _on_finding(self, finding: Finding) -> None:
        if self.sentinel.replay.is_running:
            self.sentinel.replay.found.append(finding)
        else:
            self._tell(finding)

    def _begin(self) -> None:
        """Training begins."""
        if self._start is not None:
            self._start.remove()
            self._start = None
        self._hooks.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lets everything pass unseen meanwhile."""
        with self._hooks.paused(), self._start.paused() if self._start else contextlib.nullcontext():
            yield

    def conclude(self) -> None:
        """Draws the conclusions that only the end of a run allows."""
        with self.paused():
            self.tracer.finish()

    def result(self, facts: Mapping[str, Any], troubles: Iterable[Note]) -> Findings:
        """Returns what was found so far."""
        tracer = self.tracer
        notes = (*tracer.ledger.notes, *troubles)
        return Findings(tracer.steps.count(), tracer.ledger.findings, notes, {**facts, "detect": "guard"})

    def explain(self, error: BaseException) -> None:
        """Looks for the reason of an error that ended the training."""
        with self.paused():
            self.tracer.stop(error)

    def remove(self) -> None:
        """Takes the guard off."""
        if self._start is not None:
            self._start.remove()
        self._hooks.remove()
