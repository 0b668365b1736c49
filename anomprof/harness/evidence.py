"""What is seen of a mode outside the timed passes: its proof, its operator rows, its memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anomprof.harness.bench import Bench
from anomprof.instruments.memory import peak_on_accelerator, profile_step
from anomprof.instruments.observer import Observer
from anomprof.instruments.trace_reader import TraceSummary
from anomprof.modes import without_profiler
from anomprof.modes.mode import Mode, Seen
from anomprof.record import Reading, Site
from anomprof.results import BASELINE

# A watched pass takes as many steps as a turn, so that what it counts is true of the turns; where
# steps are slow it ends after this time.
_WATCH_SECONDS = 0.5

# A mode that has not settled by then (a scale that does not work) never will.
_MOST_SETTLING_STEPS = 8


@dataclass(frozen=True)
class Evidence:
    """All that a mode's untimed passes showed.

    Attributes:
        seen: For the mode's proof.
        readings: Operator rows and memory, for the record.
        profiled_as: Name of the planned mode whose profiled pass stands for this one's, if so.
        first_step_seconds: The mode's very first step: compilation and lazy set-up included.
    """

    seen: Seen
    readings: tuple[Reading, ...]
    profiled_as: str | None
    first_step_seconds: float


def gather(bench: Bench, name: str, mode: Mode, planned: Sequence[str], steps: int) -> Evidence:
    """Runs a mode's untimed passes.

    Args:
        bench: Where to run.
        name: The mode's name in the plan.
        mode: The mode.
        planned: Names of all modes of the plan.
        steps: Steps of a turn, the settling step included.
    """
    seen, first_step_seconds = _watch(bench, mode, steps)
    profiled = mode
    if mode.holds_profiler:
        # Two torch profilers at once would take each other's session: profile what else the mode does.
        rest = without_profiler(mode)
        stand_in = rest.name if rest is not None else BASELINE
        if rest is None or stand_in in planned:
            return Evidence(seen, (), stand_in, first_step_seconds)
        profiled = rest
    summary, peak_bytes, base_bytes = _profile(bench, profiled)
    seen = replace(seen, op_calls={row.op: row.calls for row in summary.ops})
    readings = [
        *_op_readings(name, summary),
        Reading(name, "base_bytes", base_bytes),
        Reading(name, "peak_bytes", peak_bytes),
        Reading(name, "host_syncs", summary.host_syncs),
        Reading(name, "step_seconds", summary.step_seconds),
    ]
    return Evidence(seen, tuple(readings), None, first_step_seconds)


def _watch(bench: Bench, mode: Mode, steps: int) -> tuple[Seen, float]:
    """Takes the steps of a turn: the first is watched op by op, in all of them the mode counts."""
    observer = Observer()
    # A compiled function that runs once under a dispatch mode stays eager for good.
    by_op = mode.observable and not bench.compiles
    with bench.turn(mode, watched=True) as batches:
        begun = time.perf_counter()
        with observer if by_op else contextlib.nullcontext():
            bench.step(mode, next(batches), observer)
        first_step_seconds = time.perf_counter() - begun
        gradients = sum(parameter.grad is not None for parameter in bench.parameters)
        for number in range(1, max(steps, _MOST_SETTLING_STEPS)):
            done = number >= steps or time.perf_counter() - begun > _WATCH_SECONDS
            if done and mode.settled():
                break
            bench.step(mode, next(batches))
        figures = dict(mode.figures())
    seen = Seen(
        forward_ops=observer.of_phase("forward"),
        backward_ops=observer.of_phase("backward"),
        float_outputs=dict(observer.float_outputs),
        nodes=observer.nodes,
        nodes_with_stack=observer.nodes_with_stack,
        parameters=len(bench.parameters),
        gradients=gradients,
        figures=figures,
    )
    return seen, first_step_seconds


def _profile(bench: Bench, mode: Mode) -> tuple[TraceSummary, int, int]:
    """Profiles one step; returns the trace's sums, the peak and what was alive before, in bytes."""
    with bench.turn(mode) as batches:
        batch = next(batches)
        base_bytes = bench.state_bytes + sum(tensor.nbytes for tensor in _tensors(batch))
        summary = profile_step(lambda: bench.step(mode, batch), bench.device)
    peak_bytes = base_bytes + summary.peak_memory_delta_bytes
    if bench.device.type == "cuda":
        with bench.turn(mode) as batches:
            batch = next(batches)
            peak_bytes = peak_on_accelerator(lambda: bench.step(mode, batch), bench.device)
    return summary, peak_bytes, base_bytes


def _op_readings(mode: str, summary: TraceSummary) -> Iterator[Reading]:
    for row in summary.ops:
        site = Site(op=row.op)
        yield Reading(mode, "calls", row.calls, site)
        yield Reading(mode, "self_seconds", row.self_seconds, site)
        yield Reading(mode, "memory_bytes", row.memory_bytes, site)
        if row.device_seconds:
            yield Reading(mode, "device_seconds", row.device_seconds, site)


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from _tensors(value)
    elif isinstance(batch, Iterable) and not isinstance(batch, (str, bytes)):
        for value in batch:
            yield from _tensors(value)
