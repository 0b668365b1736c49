"""From a record to results: everything here can be computed again at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anomprof.record import OpRow, Record
from anomprof.results.anomaly_cost import AnomalyCost, split_cost
from anomprof.results.mode_result import ModeResult, mode_result
from anomprof.results.pairs import pair_up, slowdown


@dataclass(frozen=True)
class Results:
    """All that a bench run found out."""

    facts: Mapping[str, Any]
    modes: tuple[ModeResult, ...]
    anomaly_cost: AnomalyCost | None
    ops: Mapping[str, tuple[OpRow, ...]]
    rounds: int
    processes: int

    def mode(self, name: str) -> ModeResult | None:
        """Returns a mode's row, or None where the run did not plan it."""
        return next((mode for mode in self.modes if mode.name == name), None)


def derive(record: Record) -> Results:
    """Computes every result from the raw values of a record."""
    ops = _op_rows(record)
    pairs = pair_up(record.turns)
    slowdowns = {mode: slowdown(by_process) for mode, by_process in pairs.items()}
    peaks = _peaks(record)
    return Results(
        facts=record.facts,
        modes=tuple(
            mode_result(name, facts, record, pairs.get(name, {}), slowdowns.get(name), peaks)
            for name, facts in record.modes.items()
        ),
        anomaly_cost=split_cost(record, pairs, slowdowns, ops),
        ops=ops,
        rounds=len({(turn.process, turn.round) for turn in record.turns if turn.steps}),
        processes=len({turn.process for turn in record.turns}) or 1,
    )


def _peaks(record: Record) -> dict[str, float]:
    peaks: dict[str, float] = {}
    for reading in record.readings:
        if reading.quantity == "peak_bytes":
            peaks[reading.mode] = max(reading.value, peaks.get(reading.mode, 0.0))
    return peaks


def _op_rows(record: Record) -> dict[str, tuple[OpRow, ...]]:
    cells: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    first_process: dict[str, int] = {}
    for reading in record.readings:
        # Every process profiles once; one profile a mode is shown, or calls would add up.
        if reading.site.op and first_process.setdefault(reading.mode, reading.process) == reading.process:
            cells[reading.mode, reading.site.op][reading.quantity] += reading.value
    rows: dict[str, list[OpRow]] = defaultdict(list)
    for (mode, op), cell in cells.items():
        row = OpRow(
            op,
            int(cell["calls"]),
            cell["self_seconds"],
            cell["device_seconds"],
            int(cell["memory_bytes"]),
        )
        rows[mode].append(row)
    order = {
        mode: tuple(sorted(some, key=lambda row: -(row.self_seconds + row.device_seconds)))
        for mode, some in rows.items()
    }
    return {mode: order[mode] for mode in record.modes if mode in order}
