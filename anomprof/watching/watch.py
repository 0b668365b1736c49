"""One watched run: what is found is announced at once and written down as the run goes."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anomprof import __version__
from anomprof.console import Console
from anomprof.findings import FILE_NAME, Finding, Findings, Note
from anomprof.watching.journal import Journal
from anomprof.watching.ranks import Ranks, replace_file

if TYPE_CHECKING:
    from anomprof.guarding.attachment import GuardAttachment
    from anomprof.tracing.attachment import Attachment

_FAILED = 1  # exit status of --fail-on


class Watch:
    """One watched run.

    Args:
        folder: Where to write.
        script: What is watched, as the user named it.
        detect: ``trace`` looks at every op, ``guard`` once a step.
        on_bad: ``stop`` ends the script at the first finding; ``skip`` leaves a bad step out (guard only).
        command: As it was typed, for the report.
        console: Where findings are announced.
    """

    def __init__(
        self,
        folder: Path,
        *,
        script: str,
        command: str,
        detect: str = "trace",
        on_bad: str = "continue",
        console: Console | None = None,
    ) -> None:
        self._folder = folder
        self._detect = detect
        self._on_bad = on_bad
        self._console = console or Console()
        self._facts: dict[str, Any] = {
            "script": script,
            "command": command,
            "directory": str(Path.cwd()),
            "started_utc": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "anomprof_version": __version__,
        }
        self._attachment: Attachment | GuardAttachment | None = None
        self._troubles: list[Note] = []
        self._told: tuple[Any, ...] = ()
        self._ranks = Ranks.of(folder)
        self._journal = Journal(folder, self._facts)
        self._save(self.findings())

    def install(self) -> None:
        """Attaches the trace or the guard; called when torch has been imported."""
        if self._detect == "guard":
            from anomprof.guarding.attachment import GuardAttachment

            self._attachment = GuardAttachment(self._announce, self._complain, _own_code, on_bad=self._on_bad)
            return
        from anomprof.tracing.attachment import Attachment
        from anomprof.tracing.tracer import Tracer

        self._attachment = Attachment(
            lambda boundaries: Tracer(self._announce, self._complain, boundaries, _own_code)
        )

    def finish(self) -> None:
        """Draws the last conclusions, writes everything and says so; may be called several times."""
        if self._attachment is not None:
            self._attachment.conclude()
        findings = self.findings()
        told = (findings.steps, findings.findings, findings.notes)
        if told == self._told:
            return
        self._told = told
        with self._without_trace():
            if self._attachment is not None:
                self._facts["environment"] = _environment()
                findings = replace(findings, facts={**findings.facts, **self._facts})
            together = self._save(findings)
            if self._ranks is not None and not self._ranks.speaks:
                return
            from anomprof.report import finding_text, run_folder

            folder = self._folder if self._ranks is None else self._ranks.folder
            paths = run_folder.write_pages(folder, together)
            width = self._console.width(finding_text.WIDTH)
            self._console.write(finding_text.summary(together, width=width) + "\n")
            names = ", ".join([path.name for path in paths[1:]] + [FILE_NAME])
            self._console.write(f"Wrote {_shown_path(paths[0])} (beside it {names})\n")

    def explain(self, error: BaseException) -> None:
        """Looks for the reason of what ended the script."""
        if self._attachment is not None:
            self._attachment.explain(error)

    def status(self, fail_on: str | None) -> int | None:
        """Returns the exit status that the user asked for, or None for the script's own."""
        verdict = self.findings().verdict
        if fail_on == "anomaly" and verdict != "clean":
            return _FAILED
        if fail_on == "error" and any(finding.kind == "error" for finding in self.findings().findings):
            return _FAILED
        return None

    def findings(self) -> Findings:
        """Returns what was found so far."""
        if self._attachment is None:
            facts = {**self._facts, "torch_was_imported": False}
            return Findings(0, (), tuple(self._troubles), facts)
        return self._attachment.result(self._facts, self._troubles)

    def _announce(self, finding: Finding) -> None:
        with self._without_trace():
            from anomprof.report import finding_text

            text = finding_text.announce(
                finding, colour=self._console.isatty(), width=self._console.width(finding_text.WIDTH)
            )
            self._console.write(f"\n{text}\n\n")
            self._save(self.findings())
        if self._on_bad == "stop":
            if threading.current_thread() is threading.main_thread():
                raise SystemExit(0)
            import _thread

            _thread.interrupt_main()

    def _complain(self, sentence: str) -> None:
        self._console.say(sentence)
        self._troubles.append(Note(sentence))

    def _save(self, findings: Findings) -> Findings:
        """Writes the findings, and returns them with those of other ranks."""
        self._journal.write(findings)
        try:
            if self._ranks is not None:
                return self._ranks.write(findings)
            replace_file(self._folder / FILE_NAME, findings.to_json())
        except OSError as error:
            self._console.say(
                f"cannot write {self._folder / FILE_NAME} ({error.strerror}); the script goes on"
            )
        return findings

    def _without_trace(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if self._attachment is None else self._attachment.paused()


def start(folder: Path, *, script: str, command: str, detect: str, on_bad: str) -> Watch:
    """Returns a watch that has not been attached yet."""
    return Watch(folder, script=script, command=command, detect=detect, on_bad=on_bad)


def _environment() -> dict[str, Any]:
    import torch

    from anomprof.environment.facts import collect

    return collect(torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))  # type: ignore[no-untyped-call]


def _shown_path(path: Path) -> Path:
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd())
    return path


def _own_code() -> tuple[str, ...]:
    """Returns the script's file and the folder of its package: the user's, even where they are installed.

    Nothing as long as the script has not begun.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    package = getattr(spec, "parent", "") or ""
    file = getattr(sys.modules.get(package.partition(".")[0]), "__file__", None)
    script = getattr(main, "__file__", None)
    own = [os.path.abspath(script)] if script else []  # noqa: PTH100  (as frames are named)
    return (*own, str(Path(file).parent) + os.sep) if file else tuple(own)
