"""The CSV files: every timed step, and every op of every profiled step."""

from __future__ import annotations

import csv
from typing import TextIO

from anomprof.record import Record
from anomprof.results import Results

# Names come from the user's code; the plain "\n" keeps the files the same on every system.
_LINE_END = "\n"


def write_steps(file: TextIO, record: Record) -> None:
    """Writes one line per timed step, those of an unfinished turn too."""
    sheet = csv.writer(file, lineterminator=_LINE_END)
    sheet.writerow(
        ["process", "round", "position", "mode", "step", "wait_seconds", "step_seconds", "edge_seconds"]
    )
    for turn in record.turns:
        sheet.writerows(
            (
                turn.process,
                turn.round,
                turn.position,
                turn.mode,
                step.number,
                step.wait_seconds,
                step.step_seconds,
                step.edge_seconds,
            )
            for step in turn.steps
        )


def write_ops(file: TextIO, results: Results) -> None:
    """Writes one line per mode and op."""
    sheet = csv.writer(file, lineterminator=_LINE_END)
    sheet.writerow(["mode", "op", "calls", "self_seconds", "device_seconds", "memory_bytes"])
    for mode, rows in results.ops.items():
        sheet.writerows(
            (mode, row.op, row.calls, row.self_seconds, row.device_seconds, row.memory_bytes) for row in rows
        )
