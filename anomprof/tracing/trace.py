"""``anomprof.trace``: the trace around any training code."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from anomprof import __version__
from anomprof.console import Console
from anomprof.environment.facts import collect
from anomprof.errors import UserError
from anomprof.findings import KIND_NAMES, Finding, Findings, Note
from anomprof.record.reader import FILE_NAME as RECORD
from anomprof.tracing.attachment import Attachment
from anomprof.tracing.tracer import Tracer


class Trace:
    """Watches training code while it is entered.

    ::

        with anomprof.trace() as t:
            train()
        for finding in t.findings:
            print(finding.file, finding.line, finding.kind)
        t.save("reports/first-try")  # report.html, report.md, findings.json

    Every op is looked at, in forward, backward, optimizer and evaluation; training is not changed. Only one
    trace can be entered at a time. An error of autograd that ends the block becomes a finding as well.

    Args:
        announce: Whether each finding is printed to stderr, in one line, when it is made.
    """

    def __init__(self, *, announce: bool = True) -> None:
        self._announce = announce
        self._console = Console()
        self._troubles: list[Note] = []
        self._facts: dict[str, Any] = {}
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
        return self._attachment.result(self._facts, self._troubles)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes ``findings.json``, ``report.html`` and ``report.md``, also while the trace is entered.

        Args:
            folder: Made if it is not there. What an earlier ``save`` left in it is replaced.

        Returns:
            The path of the page.

        Raises:
            UserError: The folder holds the record of a run of ``python -m anomprof``, or cannot be written.
        """
        from anomprof.report import run_folder  # its libraries are not needed to watch

        folder = Path(folder)
        if (folder / RECORD).exists():
            raise UserError(f"{folder} already holds a run ({RECORD}); save into another folder")
        with self._attachment.paused() if self._attachment else contextlib.nullcontext():
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(
                    f"cannot make {folder} ({error.strerror}); save into another folder"
                ) from error
            self._facts["environment"] = collect(
                torch.device("cuda" if torch.cuda.is_initialized() else "cpu")  # type: ignore[no-untyped-call]
            )
            return run_folder.write(folder, self.result())[0]

    def __repr__(self) -> str:
        found = self.result()
        counts = f"{len(found.findings)} findings, {len(found.notes)} notes, {found.steps} steps"
        return f"<anomprof.trace: {found.verdict}; {counts}>"

    def __enter__(self) -> Trace:
        if Trace._entered is not None:
            raise RuntimeError("anomprof.trace() is already on; leave the first before entering another")
        Trace._entered = self
        self._facts = {
            "directory": str(Path.cwd()),
            "started_utc": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "anomprof_version": __version__,
        }
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
