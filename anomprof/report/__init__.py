"""Reports: record -> results -> page -> HTML, Markdown, JSON, CSV. Never imports torch."""

from __future__ import annotations

from pathlib import Path

from anomprof.report.terminal import print_summary

__all__ = ["print_summary", "write"]


def write(folder: Path) -> list[Path]:
    """Writes all files of a report (see :func:`anomprof.report.folder.write`)."""
    # Imported late: matplotlib takes half a second, and a summary in the terminal needs none of it.
    from anomprof.report import folder as files

    return files.write(folder)
