"""``anomprof.trace``: the trace around any training code."""

from __future__ import annotations

from types import TracebackType

from anomprof.console import Console
from anomprof.findings import KIND_NAMES, Finding, Findings, Note
from anomprof.tracing.attachment import Attachment
from anomprof.tracing.tracer import Tracer


class Trace:
    """Watches training code while it is entered.

    ::

        with anomprof.trace() as t:
            train()
        for finding in t.findings:
            print(finding.file, finding.line, finding.kind)

    Every op is looked at, in forward, backward, optimizer and evaluation; training is not changed. Only one
    trace can be entered at a time. An error of autograd that ends the block becomes a finding as well.

    Args:
        announce: Whether each finding is printed to stderr, in one line, when it is made.
    """

    def __init__(self, *, announce: bool = True) -> None:
        self._announce = announce
        self._console = Console()
        self._troubles: list[Note] = []
        self._attachment: Attachment | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far, in the order in which it was found."""
        return self.result().findings

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is worth knowing but harmed nothing."""
        return self.result().notes

    @property
    def places_noted(self) -> int:
        """How many forward ops the trace could name as the makers of autograd nodes: shows that it was on."""
        return 0 if self._attachment is None else self._attachment.places_noted

    def result(self) -> Findings:
        """Returns everything, as it stands in ``findings.json``."""
        if self._attachment is None:
            return Findings(0)
        tracer = self._attachment.tracer
        facts = {"not_watched": [f"{count} results: {what}" for what, count in tracer.looks.failed.items()]}
        notes = (*tracer.ledger.notes, *self._troubles)
        return Findings(tracer.steps.count(), tracer.ledger.findings, notes, facts)

    def __repr__(self) -> str:
        found = self.result()
        counts = f"{len(found.findings)} findings, {len(found.notes)} notes, {found.steps} steps"
        return f"<anomprof.trace: {found.verdict}; {counts}>"

    def __enter__(self) -> Trace:
        if Trace._entered is not None:
            raise RuntimeError("anomprof.trace() is already on; leave the first before entering another")
        Trace._entered = self
        try:
            self._attachment = Attachment(lambda boundaries: Tracer(self._tell, self._complain, boundaries))
        except BaseException:
            Trace._entered = None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Trace._entered = None
        if self._attachment is None:
            return
        if error is not None:
            self._attachment.explain(error)
        self._attachment.conclude()
        self._attachment.remove()

    def _tell(self, finding: Finding) -> None:
        if self._announce:
            where = f"{finding.file}:{finding.line}" if finding.line else "an unknown line"
            module = f" in {finding.module}" if finding.module else ""
            self._console.say(
                f"first {KIND_NAMES[finding.kind]}: step {finding.step}, {finding.phase}, "
                f"{finding.op}{module} at {where}: {finding.code} (noticed in {finding.symptom})"
            )

    def _complain(self, sentence: str) -> None:
        self._console.say(sentence)
        self._troubles.append(Note(sentence))

    _entered: Trace | None = None


trace = Trace
"""The name under which it is public: ``with anomprof.trace() as t``."""
