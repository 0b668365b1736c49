"""Where a watched run writes."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections.abc import Mapping
from pathlib import Path

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.running.script import Script

_FINDINGS = "findings.json"
_MARKS = (_FINDINGS, "record.sqlite")  # a folder with one of these holds a run

_WRITTEN = (
    *_MARKS, "rank-0/findings.json", "record.sqlite-wal", "record.sqlite-shm", "record.sqlite-journal",
    "report.html", "report.md",
)  # fmt: skip

#: What ``bench`` derives from a record and ``run`` would leave to contradict it.
_DERIVED = ("results.json", "steps.csv", "ops.csv")

_MOST_NAMES = 1000


def prepare_folder(
    script: Script, out: Path | None, *, force: bool = False, environ: Mapping[str, str] = os.environ
) -> Path:
    """Chooses the folder of a run and makes it ready to be written to.

    The ranks of a distributed run share it: the first one writes into it, the others into ``rank-1``
    and so on below. They start at the same time, so each asks only after files that no other rank writes:
    what another has just written must not pass for an earlier run.

    Args:
        script: Names the folder where ``out`` is not given.
        out: As the user typed it.
        force: Whether an earlier run in it may be replaced.
        environ: Tells whether, and as what, this process belongs to a distributed run.

    Returns:
        An absolute path, because scripts change the working directory.

    Raises:
        UserError: It holds a run already (exit status 2), or cannot be written (3).
    """
    ranks = _Ranks(environ)
    shown = out if out is not None else Path("reports") / ranks.default_name(script)
    shown = ranks.place(shown)
    folder = shown.absolute()
    try:
        if out is None and not ranks.several:
            return _create_unique(folder)
        _make_room(folder, shown, ranks.marks(folder), force=force)
        folder.mkdir(parents=True, exist_ok=True)
        _try_to_write(folder)
    except FileExistsError as error:
        raise UserError(f"{shown} is a file; --out takes a folder") from error
    except OSError as error:
        raise UserError(
            f"cannot write to {shown} ({error.strerror}); choose another folder with --out", COULD_NOT_MEASURE
        ) from error
    return folder


class _Ranks:
    """The place of this process among those that ``torchrun`` started."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.several = _number(environ.get("WORLD_SIZE")) > 1 and "RANK" in environ
        self._rank = _number(environ.get("RANK")) if self.several else 0

    def default_name(self, script: Script) -> str:
        """A name that is new for each run and the same in every rank."""
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", script.name).strip("-.") or "script"
        if not self.several:
            now = datetime.datetime.now(datetime.timezone.utc)
            return f"{name}-{now:%Y%m%dT%H%M%SZ}"
        port = self._environ.get("MASTER_PORT", "0")
        if _number(self._environ.get("GROUP_WORLD_SIZE")) > 1:  # machines share no clock
            run = self._environ.get("TORCHELASTIC_RUN_ID", "none")
            return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{name}-{run}-{port}")
        return f"{name}-{port}-{_start_of(os.getppid())}"

    def place(self, folder: Path) -> Path:
        """Where this rank and attempt writes; a restart keeps what the failure left."""
        restarts = _number(self._environ.get("TORCHELASTIC_RESTART_COUNT"))
        folder = folder / f"restart-{restarts}" if restarts else folder
        return folder / f"rank-{self._rank}" if self._rank else folder

    def marks(self, folder: Path) -> tuple[str, ...]:
        """The files that show that this rank's folder holds an earlier run.

        Any rank may write the merged findings, before the first one has looked: beside a ``rank-*`` folder
        they prove nothing, and the first one's own do.
        """
        if not self.several or self._rank:
            return _MARKS
        own = (f"rank-0/{_FINDINGS}", "record.sqlite")
        return own if any(folder.glob("rank-*")) else (*own, _FINDINGS)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _start_of(process: int) -> str:
    """A number that tells one process from a later one with the same id, read alike by all its children."""
    try:
        # The name, in parentheses, may hold anything; the 20th word after it counts ticks since boot.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        import psutil

        return str(round(psutil.Process(process).create_time()))


def _create_unique(folder: Path) -> Path:
    """Makes a new folder, next to one that was made in the same second."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, _MOST_NAMES):
        candidate = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        with contextlib.suppress(FileExistsError):
            candidate.mkdir()
            _try_to_write(candidate)
            return candidate
    raise FileExistsError(folder)


def _make_room(folder: Path, shown: Path, marks: tuple[str, ...], *, force: bool) -> None:
    held = [name for name in marks if (folder / name).exists()]
    if not held:
        return
    if not force:
        raise UserError(
            f"{shown} already holds a run ({held[0]}); "
            "give another folder with --out, or replace it with --force"
        )
    for name in (*_WRITTEN, *(_DERIVED if "record.sqlite" in held else ())):
        (folder / name).unlink(missing_ok=True)


def _try_to_write(folder: Path) -> None:
    probe = folder / f".anomprof-{os.getpid()}"
    probe.touch()
    probe.unlink()
