"""What ``anomprof list`` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from anomprof import devices, modes, workloads
from anomprof.modes.mode import ModeOptions


def print_listing(console: Console) -> None:
    """Prints workloads and modes, one line each, and why those not available are not."""
    device = devices.resolve("auto")
    options = ModeOptions()
    console.print("[bold]Workloads[/bold] (python -m anomprof bench NAME)", highlight=False)
    table = _table()
    for listing in workloads.available():
        table.add_row(listing.name, _described(listing.description, listing.unavailable_reason))
    console.print(table)
    console.print(
        f"\n[bold]Modes[/bold] on {device} (--modes NAME,NAME,...; * = in the default list)", highlight=False
    )
    table = _table()
    known = modes.known()
    for name in [*known, *(name for name in modes.ALL if name not in known)]:
        mode = modes.make(name, options)
        star = "*" if name in modes.DEFAULT else " "
        table.add_row(f"{star} {name}", _described(mode.summary, mode.unavailable(device)))
    table.add_row("  a+b", "any two or more of these at once")
    table.add_row("  file.py:Class", "your own: a subclass of anomprof.Mode")
    console.print(table)


def _table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    return table


def _described(description: str, unavailable: str | None) -> str:
    return f"not available: {unavailable.split(';')[0]}" if unavailable else description
