"""The ranks of a distributed run: each writes what it found, and all of it is merged into one file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from anomprof.findings import FILE_NAME, Finding, Findings, Note


class Ranks:
    """One rank's view of the shared folder.

    Args:
        folder: The run's folder, shared by all ranks.
        rank: This process's.
        size: How many ranks there are. What an earlier run of more ranks has left is not theirs.

    Attributes:
        speaks: Whether this rank writes the pages and says how the run ended.
    """

    def __init__(self, folder: Path, rank: int, size: int) -> None:
        self.folder = folder
        self._size = size
        self._own = folder / f"rank-{rank}"
        self.speaks = rank == 0
        self._own.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of(cls, folder: Path, environ: Mapping[str, str] = os.environ) -> Ranks | None:
        """Returns the ranks of a distributed run, None where there is only one process.

        Args:
            folder: This process's folder: the shared one for rank 0, one inside it for the others.
            environ: Tells which rank this is.
        """
        size, rank = environ.get("WORLD_SIZE", "1"), environ.get("RANK", "0")
        if not (size.isdecimal() and rank.isdecimal()) or int(size) < 2:
            return None
        return cls(folder.parent if folder.name == f"rank-{rank}" else folder, int(rank), int(size))

    def write(self, findings: Findings) -> Findings:
        """Writes this rank's findings and those of all ranks together, which it returns."""
        with self._alone():
            replace_file(self._own / FILE_NAME, findings.to_json())
            together = merge(list(self._read()))
            replace_file(self.folder / FILE_NAME, together.to_json())
        return together

    def _read(self) -> Iterator[Findings]:
        for rank in range(self._size):
            with contextlib.suppress(OSError, ValueError):
                yield Findings.from_json((self.folder / f"rank-{rank}" / FILE_NAME).read_bytes())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One rank at a time: the last to write must have read the others' last."""
        try:
            import fcntl
        except ImportError:  # no such locks here: a rank's last findings may be missing from the merged file
            yield
            return
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def merge(ranks: list[Findings]) -> Findings:
    """Returns the findings of several ranks as one run's.

    A rank that received a bad gradient from another does not know where it began: beside a rank that does
    know, its finding is a note.
    """
    found = [finding for rank in ranks for finding in rank.findings]
    known = [finding for finding in found if finding.confidence != "unknown"]
    received = [finding for finding in found if finding.confidence == "unknown"]
    notes = [note for rank in ranks for note in rank.notes]
    shown: list[Finding] = sorted(known, key=lambda finding: (finding.step, finding.rank))
    if not known:
        shown = sorted(received, key=lambda finding: (finding.step, finding.rank))
    else:
        notes += [
            Note(
                f"rank {finding.rank} received bad values from another rank ({finding.symptom})", finding.step
            )
            for finding in received
        ]
    facts = dict(ranks[0].facts) if ranks else {}
    return Findings(
        steps=max((rank.steps for rank in ranks), default=0),
        findings=tuple(shown),
        notes=tuple(_without_twins(notes)),
        facts={**facts, "ranks": len(ranks)},
    )


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file so that a reader finds the old content or the new, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_bytes(content)
    draft.replace(path)


def _without_twins(notes: list[Note]) -> list[Note]:
    kept: dict[tuple[str, int | None], Note] = {}
    for note in notes:
        known = kept.get((note.what, note.step))
        kept[note.what, note.step] = (
            note if known is None else replace(known, times=max(known.times, note.times))
        )
    return list(kept.values())
