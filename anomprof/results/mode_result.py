"""One mode's row of results."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anomprof.environment.precision import low_precision_reason
from anomprof.record import Record, Turn
from anomprof.results.pairs import BASELINE, Pair, is_complete
from anomprof.stats import Interval, Verdict, median_interval, ratio_estimate, verdict

_AUTOCAST_DTYPES = {"amp-bf16": "bfloat16", "amp-fp16": "float16"}


@dataclass(frozen=True)
class ModeResult:
    """One mode's row.

    Attributes:
        available: Whether it could be run here; if not, ``reason`` says why and the rest is empty.
        applied: Whether the proof that it was on was found.
        proof: What was seen, for people.
        figures: The proof's numbers and what the mode counted (share of clipped steps, scale, ...).
        keeps_numbers: Whether the mode promises to leave the trained numbers bitwise as they are.
        step: Median seconds of a step; None where no turn was completed.
        slowdown: Ratio to the baseline, paired within rounds; None for the baseline itself.
        wait_seconds: Median time waiting for a batch, not part of the step.
        edge_share: Share of the step spent entering and leaving the mode.
        memory_from: The mode whose profiled pass gave memory and ops, where it is not this one.
        same_parameters: Whether every turn ended bitwise where the baseline ends; None where the
            baseline does not repeat itself or one of the two has no complete turn.
        sat_out: Why it was measured in fewer rounds than others, if so.
    """

    name: str
    summary: str
    available: bool
    reason: str | None = None
    applied: bool = False
    proof: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    keeps_numbers: bool = False
    step: Interval | None = None
    slowdown: Interval | None = None
    verdict: Verdict | None = None
    samples_per_second: float | None = None
    wait_seconds: float | None = None
    edge_share: float | None = None
    peak_memory_bytes: float | None = None
    memory_ratio: float | None = None
    memory_from: str | None = None
    energy_joules_per_step: float | None = None
    energy_unavailable_because: str | None = None
    final_loss: float | None = None
    same_parameters: bool | None = None
    same_buffers: bool | None = None
    sat_out: str | None = None
    first_step_seconds: float | None = None
    ratio_by_process: Sequence[float] = ()


def mode_result(
    name: str,
    facts: Mapping[str, Any],
    record: Record,
    pairs: Mapping[int, Sequence[Pair]],
    slowdown: Interval | None,
    peaks: Mapping[str, float],
) -> ModeResult:
    """Computes a mode's row.

    Args:
        name: Of the mode.
        facts: What the record says of it.
        record: The whole record.
        pairs: Its turns with the baseline around them, by process.
        slowdown: Made of these pairs.
        peaks: Peak memory of every mode, in bytes.
    """
    turns = [turn for turn in record.turns if turn.mode == name and is_complete(turn)]
    steps = [step for turn in turns for step in turn.steps]
    step = median_interval([step.step_seconds for step in steps]) if steps else None
    samples = record.facts.get("workload", {}).get("samples_per_batch")
    memory_from = facts.get("profiled_as")
    peak, baseline_peak = peaks.get(memory_from or name), peaks.get(BASELINE)
    energy, no_energy = _energy(record, turns)
    judged = verdict(slowdown) if slowdown else None
    return ModeResult(
        name=name,
        summary=facts.get("summary", ""),
        available=facts.get("available", True),
        reason=facts.get("reason"),
        applied=facts.get("applied", False),
        proof=facts.get("proof", ""),
        figures={**facts.get("figures", {}), **_counted(turns), **_why_slow(name, judged, record)},
        keeps_numbers=facts.get("keeps_numbers", False),
        step=step,
        slowdown=slowdown,
        verdict=judged,
        samples_per_second=samples / step.estimate if samples and step else None,
        wait_seconds=statistics.median(step.wait_seconds for step in steps) if steps else None,
        edge_share=_edge_share(turns),
        peak_memory_bytes=peak,
        memory_ratio=peak / baseline_peak if peak and baseline_peak else None,
        memory_from=memory_from,
        energy_joules_per_step=energy,
        energy_unavailable_because=no_energy,
        final_loss=turns[0].facts.get("final_loss") if turns else None,
        same_parameters=_same(record.turns, name, "parameters_digest"),
        same_buffers=_same(record.turns, name, "buffers_digest"),
        sat_out=facts.get("sat_out"),
        first_step_seconds=facts.get("first_step_seconds"),
        ratio_by_process=tuple(ratio_estimate([pair.ratio for pair in some]) for some in pairs.values()),
    )


def _counted(turns: Sequence[Turn]) -> dict[str, float]:
    """Adds up what the mode counted in its timed turns, as ``timed_...``."""
    sums: dict[str, float] = defaultdict(float)
    for turn in turns:
        for key, value in turn.facts.get("counted", {}).items():
            sums[f"timed_{key}"] += value
    return dict(sums)


def _edge_share(turns: Sequence[Turn]) -> float | None:
    total = sum(step.step_seconds for turn in turns for step in turn.steps)
    edges = sum(step.edge_seconds for turn in turns for step in turn.steps)
    return edges / total if total else None


def _same(turns: Sequence[Turn], name: str, digest: str) -> bool | None:
    """Compares digests within each process; None where the baseline does not repeat itself."""
    reference: dict[int, set[str]] = defaultdict(set)
    seen: dict[int, set[str]] = defaultdict(set)
    for turn in turns:
        if is_complete(turn) and turn.facts.get(digest):
            if turn.mode == BASELINE:
                reference[turn.process].add(turn.facts[digest])
            if turn.mode == name:
                seen[turn.process].add(turn.facts[digest])
    if name == BASELINE:
        return all(len(digests) == 1 for digests in seen.values()) if seen else None
    compared = [process for process in seen if reference.get(process)]
    if not compared or any(len(reference[process]) != 1 for process in compared):
        return None
    return all(seen[process] == reference[process] for process in compared)


def _why_slow(name: str, judged: Verdict | None, record: Record) -> dict[str, str]:
    """Explains a slow autocast where the machine has no units for its precision."""
    if judged != "slower":
        return {}
    environment = record.facts.get("environment") or {}
    for part in name.split("+"):
        dtype = _AUTOCAST_DTYPES.get(part)
        reason = low_precision_reason(environment, dtype) if dtype else None
        if reason:
            return {"why_slow": reason}
    return {}


def _energy(record: Record, turns: Sequence[Turn]) -> tuple[float | None, str | None]:
    joules = [
        turn.facts["energy_joules_per_step"] for turn in turns if turn.facts.get("energy_joules_per_step")
    ]
    if joules:
        return statistics.median(joules), None
    reasons = [turn.facts["energy_refused"] for turn in turns if turn.facts.get("energy_refused")]
    if reasons:
        return None, reasons[0]
    return None, record.facts.get("telemetry", {}).get("unavailable_because") or "no turn was completed"
