"""Reports: record -> results -> page -> HTML, Markdown, JSON, CSV. Never imports torch."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from anomprof import record as records
from anomprof.criticism import criticise
from anomprof.report.terminal import print_summary
from anomprof.results import derive

__all__ = ["print_summary", "show", "write"]


def write(folder: Path) -> list[Path]:
    """Writes all files of a report (see :func:`anomprof.report.folder.write`)."""
    # Imported late: matplotlib takes half a second, and a summary in the terminal needs none of it.
    from anomprof.report import folder as files

    return files.write(folder)


def show(folder: Path, console: Console) -> tuple[list[Path], str]:
    """Writes all files of the record in ``folder``; returns their paths and the summary for a console.

    The summary comes as text: printing it may fail (a reader that has gone), the files are there by then.
    """
    from anomprof.report import folder as files

    record = records.load(folder)
    results = derive(record)
    warnings = criticise(results, record)
    paths = files.write_files(folder, record, results, warnings)
    with console.capture() as captured:
        print_summary(results, warnings, console)
    return paths, captured.get()
