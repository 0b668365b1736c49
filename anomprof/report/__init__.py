"""Reports: record -> results -> page -> HTML, Markdown, JSON, CSV. Never imports torch.

Everything is imported late: the text of a finding is written within the user's process, which should
not have to wait for statistics and plots.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from anomprof.results import Results

__all__ = ["print_summary", "show", "write"]


def write(folder: Path) -> list[Path]:
    """Writes all files of a report (see :func:`anomprof.report.folder.write`)."""
    from anomprof.report import folder as files

    return files.write(folder)


def print_summary(results: Results, warnings: Sequence[str], console: Console) -> None:
    """Prints the summary of a bench run (see :func:`anomprof.report.terminal.print_summary`)."""
    from anomprof.report import terminal

    terminal.print_summary(results, warnings, console)


def show(folder: Path, console: Console) -> tuple[list[Path], str]:
    """Writes all files of the record in ``folder``; returns their paths and the summary for a console.

    The summary comes as text: printing it may fail (a reader that has gone), the files are there by then.
    """
    from anomprof import record as records
    from anomprof.criticism import criticise
    from anomprof.report import folder as files
    from anomprof.results import derive

    record = records.load(folder)
    results = derive(record)
    warnings = criticise(results, record)
    paths = files.write_files(folder, record, results, warnings)
    with console.capture() as captured:
        print_summary(results, warnings, console)
    return paths, captured.get()
