"""The files of a report, written beside the record so that a full disk leaves no half file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import orjson

from anomprof import record as records
from anomprof.criticism import criticise
from anomprof.report import html, markdown, plots, sheets, views
from anomprof.report.whole_file import write_whole
from anomprof.results import Results, derive, to_json

_HINT = (
    "the record is unharmed: free some space or make the folder writable, then run "
    "'python -m anomprof report' on it"
)


def write(folder: Path) -> list[Path]:
    """Writes the report of the record in ``folder`` and returns what was written, the page first.

    Raises:
        UserError: There is no readable record, or the folder cannot be written.
    """
    record = records.load(folder)
    results = derive(record)
    return write_files(folder, record, results, criticise(results, record))


def write_files(
    folder: Path, record: records.Record, results: Results, warnings: Sequence[str]
) -> list[Path]:
    """Writes the files of a report whose parts are at hand.

    Raises:
        UserError: The folder cannot be written.
    """
    page = views.page(results, warnings)
    content = to_json(results, warnings)
    contents: dict[str, Callable[[TextIO], object]] = {
        "report.html": lambda file: file.write(html.render(page, plots.draw_all(page, results, record))),
        "report.md": lambda file: file.write(markdown.render(page)),
        "results.json": lambda file: file.write(
            orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"
        ),
        "steps.csv": lambda file: sheets.write_steps(file, record),
        "ops.csv": lambda file: sheets.write_ops(file, results),
    }
    target = folder if folder.is_dir() else folder.parent
    return [write_whole(target / name, fill, _HINT) for name, fill in contents.items()]
