"""The operator table: what each op costs in the baseline and under anomaly mode."""

from __future__ import annotations

from dataclasses import dataclass

from anomprof.record import OpRow
from anomprof.report import units
from anomprof.report.page import Column, Row, Section, Table
from anomprof.results import BASELINE, Results

_SHOWN = 20
_OTHER = "anomaly"


@dataclass(frozen=True)
class _Pair:
    before: OpRow
    after: OpRow

    @property
    def extra_seconds(self) -> float:
        """Difference of CPU and device time together."""
        return (self.after.self_seconds - self.before.self_seconds) + (
            self.after.device_seconds - self.before.device_seconds
        )


def section(results: Results) -> Section:
    """Returns the table of the ops that differ most; without profiles, the reason."""
    title = "Operators: baseline against anomaly mode"
    missing = [name for name in (BASELINE, _OTHER) if not results.ops.get(name)]
    if missing:
        return Section(title, (f"Not shown: the record holds no op rows of {' and '.join(missing)}.",))
    pairs = _pairs(results.ops[BASELINE], results.ops[_OTHER])
    shown = sorted(pairs, key=lambda pair: (-abs(pair.extra_seconds), pair.before.op))[:_SHOWN]
    has_device = any(row.device_seconds for rows in results.ops.values() for row in rows)
    which = "All ops, those" if len(shown) == len(pairs) else f"The {len(shown)} of {len(pairs)} ops"
    caption = (
        f"{which} whose time differs most{' first' if len(shown) == len(pairs) else ''} between one profiled "
        "step of each; the ops of every mode are in ops.csv. Self time leaves out the ops called inside. "
        "Memory is what the op itself allocated minus what it freed. One step has no interval: small "
        "differences of unchanged ops are noise."
    )
    return Section(title, (Table(caption, _columns(has_device), tuple(_row(p, has_device) for p in shown)),))


def _pairs(before: tuple[OpRow, ...], after: tuple[OpRow, ...]) -> list[_Pair]:
    old, new = ({row.op: row for row in rows} for rows in (before, after))
    nothing = {op: OpRow(op, 0, 0.0, 0.0, 0) for op in [*old, *new]}
    return [_Pair(old.get(op, nothing[op]), new.get(op, nothing[op])) for op in nothing]


def _columns(has_device: bool) -> tuple[Column, ...]:
    quantities = ["calls", "self time", *(["device time"] if has_device else []), "memory"]
    numbers = [
        Column(title, is_number=True)
        for name in quantities
        for title in (name, f"{name} with anomaly", f"more {name}")
    ]
    return (Column("op"), *numbers)


def _row(pair: _Pair, has_device: bool) -> Row:
    old, new = pair.before, pair.after
    cells = [units.one_line(old.op)]
    cells += [units.count(old.calls), units.count(new.calls), units.count(new.calls - old.calls, signed=True)]
    times = [(old.self_seconds, new.self_seconds)]
    if has_device:
        times.append((old.device_seconds, new.device_seconds))
    for before, after in times:
        cells += [units.seconds(before), units.seconds(after), units.seconds(after - before, signed=True)]
    size = new.memory_bytes - old.memory_bytes
    cells += [units.size(old.memory_bytes), units.size(new.memory_bytes), units.size(size, signed=True)]
    return Row(tuple(cells), "added" if not old.calls else "")
