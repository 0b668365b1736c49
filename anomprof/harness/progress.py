"""The live display of a bench run: which mode, which round, time left, current estimates."""

from __future__ import annotations

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from anomprof.harness.rounds import State
from anomprof.results import BASELINE
from anomprof.stats import Interval, verdict

_BAR_WIDTH = 40
_OVERTIME = "past the budget (each mode gets two turns; name fewer with --modes)"

# Where a log file is written instead of a terminal.
_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """Shows the state on stderr; on a terminal as a table in place, elsewhere a line now and then.

    There is no refreshing thread: it is redrawn between turns only, so that nothing runs beside a
    timed step.
    """

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live: Live | None = None
        self._last_doing = ""
        self._next_line_at = 0.0
        if console.is_terminal:
            self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, state: State) -> None:
        """Shows the state."""
        if self._live is not None:
            self._live.update(self._picture(state), refresh=True)
            return
        if state.doing != self._last_doing or state.seconds_used >= self._next_line_at:
            self._last_doing = state.doing
            self._next_line_at = state.seconds_used + _SECONDS_BETWEEN_LINES
            self._console.print(_line(state), soft_wrap=True, highlight=False)

    def _picture(self, state: State) -> Group:
        used = min(state.seconds_used, state.budget_seconds)
        left = max(0.0, state.budget_seconds - state.seconds_used)
        head = Text.assemble((self._title, "bold"), "  ", _doing(state))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=state.budget_seconds, completed=used, width=_BAR_WIDTH),
            f"at most {_minutes(left)} left" if left else _OVERTIME,
        )
        table = Table.grid(padding=(0, 2))
        for name in state.modes:
            if name != BASELINE:
                marker = "▸" if name == state.mode else " "
                table.add_row(f"{marker} {name}", *_cells(state, name))
        return Group(head, bar, table)


def _doing(state: State) -> str:
    where = f"round {state.round}, " if state.round else ""
    return f"{where}{state.doing}" + (f": {state.mode}" if state.mode else "")


def _cells(state: State, name: str) -> tuple[str, str]:
    if name in state.unavailable:
        return "not available", state.unavailable[name][:60]
    if name in state.slowdowns:
        return estimate(state.slowdowns[name]), verdict(state.slowdowns[name])
    return "", ""


def estimate(ratio: Interval) -> str:
    """Returns ``1.27x (1.24-1.31)``, or the bare ratio where there is no interval yet."""
    if ratio.n < 2:
        return f"{ratio.estimate:.2f}x"
    return f"{ratio.estimate:.2f}x ({ratio.low:.2f}-{ratio.high:.2f})"


def _line(state: State) -> str:
    known = ", ".join(f"{name} {ratio.estimate:.2f}x" for name, ratio in state.slowdowns.items())
    where = f"{state.seconds_used:.0f} s of {state.budget_seconds:.0f} s"
    if state.seconds_used > state.budget_seconds:
        where = f"{state.seconds_used:.0f} s, {_OVERTIME}"
    return f"{where}: {_doing(state)}" + (f" ({known})" if known else "")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
