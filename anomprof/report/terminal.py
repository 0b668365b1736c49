"""The summary in the terminal: the verdict, one table that fits 80 columns, and what to doubt."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anomprof.report import units, verdict
from anomprof.report.mode_rows import ModeRow, mode_rows
from anomprof.results import Results

_STYLES = {
    "slower": "red",
    "faster": "green",
    "no-difference": "cyan",
    "not-resolved": "yellow",
    "missing": "dim",
}


def print_summary(results: Results, warnings: Sequence[str], console: Console) -> None:
    """Prints the headline, the table of modes and the warnings.

    All words are plain text: a name that looks like rich's markup is printed as it is.
    """
    console.print(Text(verdict.headline(results), style="bold"))
    rows = mode_rows(results)
    measured = [row for row in rows if row.step != units.NONE]
    if measured:
        console.print(_table(measured))
    unmeasured = [row.name for row in rows if row.verdict == "not measured"]
    if unmeasured and measured:
        _print_point(console, "-", f"Not measured, since the run ended before: {', '.join(unmeasured)}.")
    for row in rows:
        if row.mark == "missing" and row.name not in unmeasured:
            for note in row.notes:  # those of other rows are details, for the page
                _print_point(console, "-", note)
    if warnings:
        console.print(Text("What to doubt", style="bold"))
        for warning in warnings:
            _print_point(console, "!", units.one_line(warning))


def _table(rows: Sequence[ModeRow]) -> Table:
    # No edges and padding on one side only: six columns have to share 80 characters.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("\nmode", overflow="fold")
    table.add_column("step\ntime", justify="right", no_wrap=True)
    table.add_column("slowdown\n(95 %)", justify="right", overflow="fold", min_width=19)
    table.add_column("\nverdict", no_wrap=True)
    table.add_column("peak\nmemory", justify="right", no_wrap=True)
    table.add_column("same\nnumbers", overflow="fold", width=7)
    for row in rows:
        cells = (row.name, row.short_step, row.slowdown, row.verdict, row.peak_memory, row.same_numbers)
        table.add_row(*(Text(cell) for cell in cells), style=_STYLES.get(row.mark, ""))
    return table


def _print_point(console: Console, sign: str, words: str) -> None:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text(sign), Text(words))
    console.print(Padding(grid, 0))
