"""What a bench record says: per mode the slowdown, memory, energy and proof. No torch.

A record holds raw values only; everything here can be computed again at any time.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anomprof.environment.precision import low_precision_reason
from anomprof.record import Record, Turn
from anomprof.stats import (
    LIVE_RESAMPLES,
    RESAMPLES,
    Interval,
    Verdict,
    as_json,
    median_interval,
    paired_difference,
    paired_ratio,
    ratio_estimate,
    verdict,
)

SCHEMA = "anomprof.results/1"
BASELINE = "baseline"

_AUTOCAST_DTYPES = {"amp-bf16": "bfloat16", "amp-fp16": "float16"}


@dataclass(frozen=True)
class OpRow:
    """One op in one mode's profiled step.

    Attributes:
        self_seconds: CPU time inside the op without its inner ops.
        device_seconds: Time of the device kernels that it launched.
        memory_bytes: Bytes allocated minus bytes freed inside the op itself.
    """

    op: str
    calls: int
    self_seconds: float
    device_seconds: float
    memory_bytes: int


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


@dataclass(frozen=True)
class AnomalyCost:
    """Where anomaly mode's extra time goes, as shares of a baseline step.

    Attributes:
        stacks: Taking a Python stack for every autograd node: ``anomaly-stacks`` minus 1.
        checks: Looking for NaN in every gradient: ``anomaly`` minus ``anomaly-stacks``.
        checks_in_ops: The checks once more, from the op rows: extra self time of the ops that
            anomaly mode calls more often than the baseline, per profiled op time of the baseline.
        check_ops: Those ops with their extra calls.
        host_syncs_per_step: Extra reads of a device value by the host.
        outside_ops: What no op row shows: the whole extra cost minus ``checks_in_ops``.
    """

    total: Interval | None
    stacks: Interval | None
    checks: Interval | None
    checks_in_ops: float | None
    check_ops: Mapping[str, int]
    host_syncs_per_step: float | None
    outside_ops: float | None


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
    slowdowns = {mode: _slowdown(by_process) for mode, by_process in pairs.items()}
    peaks = _peak_bytes(record)
    return Results(
        facts=record.facts,
        modes=tuple(
            _mode_result(name, facts, record, pairs.get(name, {}), slowdowns.get(name), peaks)
            for name, facts in record.modes.items()
        ),
        anomaly_cost=_anomaly_cost(record, pairs, slowdowns, ops),
        ops=ops,
        rounds=len({(turn.process, turn.round) for turn in record.turns if turn.steps}),
        processes=len({turn.process for turn in record.turns}) or 1,
    )


def turn_seconds(turn: Turn) -> float:
    """Returns the time of a turn's typical step: the median of its timed steps."""
    return statistics.median(step.step_seconds for step in turn.steps)


def live_slowdowns(turns: Sequence[Turn]) -> dict[str, Interval]:
    """Returns each mode's ratio to the baseline as known so far, while measuring goes on."""
    return {mode: _slowdown(by_process, LIVE_RESAMPLES) for mode, by_process in pair_up(turns).items()}


def _slowdown(by_process: Mapping[int, Sequence[Pair]], resamples: int = RESAMPLES) -> Interval:
    return paired_ratio([[pair.ratio for pair in pairs] for pairs in by_process.values()], resamples)


@dataclass(frozen=True)
class Pair:
    """A mode's turn and the baseline around it.

    Attributes:
        seconds: Of the mode's typical step.
        baseline_seconds: Geometric mean of the baseline's turns just before and just after (of the
            one that there is, where a run was cut off).
    """

    round: int
    seconds: float
    baseline_seconds: float

    @property
    def ratio(self) -> float:
        """How many times longer the mode's step is."""
        return self.seconds / self.baseline_seconds


Pairs = Mapping[str, Mapping[int, Sequence[Pair]]]


def pair_up(turns: Sequence[Turn]) -> Pairs:
    """Returns mode -> process -> one pair for each of the mode's turns."""
    pairs: dict[str, dict[int, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    by_process: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        if is_complete(turn):
            by_process[turn.process].append(turn)
    for process, run in by_process.items():
        run.sort(key=lambda turn: turn.started)
        before = _nearest_baselines(run)
        after = _nearest_baselines(run[::-1])[::-1]
        for turn, around in zip(run, zip(before, after, strict=True), strict=True):
            known = [seconds for seconds in around if seconds is not None]
            if turn.mode != BASELINE and known:
                pair = Pair(turn.round, turn_seconds(turn), statistics.geometric_mean(known))
                pairs[turn.mode][process].append(pair)
    return pairs


def _nearest_baselines(turns: Sequence[Turn]) -> list[float | None]:
    """Returns for each turn the step time of the baseline's last turn before it."""
    nearest: list[float | None] = []
    last = None
    for turn in turns:
        nearest.append(last)
        if turn.mode == BASELINE:
            last = turn_seconds(turn)
    return nearest


def is_complete(turn: Turn) -> bool:
    """Whether the turn took all its steps (the last turn of a killed run did not)."""
    return bool(turn.steps) and "final_loss" in turn.facts


def _mode_result(
    name: str,
    facts: Mapping[str, Any],
    record: Record,
    pairs: Mapping[int, Sequence[Pair]],
    slowdown: Interval | None,
    peaks: Mapping[str, float],
) -> ModeResult:
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
        figures={**facts.get("figures", {}), **_why_slow(name, judged, record)},
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


def _peak_bytes(record: Record) -> dict[str, float]:
    peaks: dict[str, float] = {}
    for reading in record.readings:
        if reading.quantity == "peak_bytes":
            peaks[reading.mode] = max(reading.value, peaks.get(reading.mode, 0.0))
    return peaks


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


def _anomaly_cost(
    record: Record,
    pairs: Pairs,
    slowdowns: Mapping[str, Interval],
    ops: Mapping[str, Sequence[OpRow]],
) -> AnomalyCost | None:
    if "anomaly" not in slowdowns:
        return None
    stacks, checks = None, None
    if "anomaly-stacks" in slowdowns:
        stacks = _minus_one(slowdowns["anomaly-stacks"])
        checks = _checks(pairs)
    in_ops: float | None = None
    extra_calls: dict[str, int] = {}
    if BASELINE in ops and "anomaly" in ops:
        in_ops, extra_calls = _extra_ops(ops[BASELINE], ops["anomaly"])
    syncs = _host_syncs(record, "anomaly")
    syncs_before = _host_syncs(record, BASELINE)
    total = _minus_one(slowdowns["anomaly"])
    return AnomalyCost(
        total=total,
        stacks=stacks,
        checks=checks,
        checks_in_ops=in_ops,
        check_ops=extra_calls,
        host_syncs_per_step=None if syncs is None or syncs_before is None else syncs - syncs_before,
        outside_ops=total.estimate - in_ops if in_ops is not None else None,
    )


def _checks(pairs: Pairs) -> Interval | None:
    """Returns anomaly mode's ratio minus that of its stacks, over the rounds that have both."""
    differences = []
    for process, whole in pairs["anomaly"].items():
        stacks = {pair.round: pair.ratio for pair in pairs["anomaly-stacks"].get(process, ())}
        differences.append([pair.ratio - stacks[pair.round] for pair in whole if pair.round in stacks])
    return paired_difference(differences) if any(differences) else None


def _host_syncs(record: Record, mode: str) -> float | None:
    counts = [r.value for r in record.readings if r.mode == mode and r.quantity == "host_syncs"]
    return counts[0] if counts else None


def _extra_ops(baseline: Sequence[OpRow], anomaly: Sequence[OpRow]) -> tuple[float | None, dict[str, int]]:
    """Extra time and calls of the ops that anomaly mode calls more often."""
    before = {row.op: row for row in baseline}
    nothing = OpRow("", 0, 0.0, 0.0, 0)
    extra_seconds, extra_calls = 0.0, {}
    for row in anomaly:
        old = before.get(row.op, nothing)
        if row.calls > old.calls:
            extra_calls[row.op] = row.calls - old.calls
            extra_seconds += max(row.self_seconds - old.self_seconds, row.device_seconds - old.device_seconds)
    busy = max(sum(row.self_seconds for row in baseline), sum(row.device_seconds for row in baseline))
    return (extra_seconds / busy if busy else None), extra_calls


def _minus_one(interval: Interval) -> Interval:
    return Interval(interval.estimate - 1, interval.low - 1, interval.high - 1, interval.n)


def to_json(results: Results, warnings: Sequence[str]) -> dict[str, Any]:
    """Returns the content of ``results.json``: fractions, seconds, bytes and joules."""
    plan = results.facts.get("plan", {})
    cost = results.anomaly_cost
    return {
        "schema": SCHEMA,
        "workload": plan.get("workload"),
        "device": plan.get("device"),
        "batch_size": results.facts.get("workload", {}).get("samples_per_batch"),
        "dtype": plan.get("dtype"),
        "environment": results.facts.get("environment", {}),
        "workload_facts": results.facts.get("workload", {}),
        "plan": plan,
        "status": results.facts.get("status"),
        "warnings": list(warnings),
        "rounds": results.rounds,
        "processes": results.processes,
        "steps_per_turn": results.facts.get("steps_per_turn"),
        "budget_seconds": plan.get("budget_seconds"),
        "modes": {mode.name: _mode_json(mode) for mode in results.modes},
        "anomaly_cost": None if cost is None else _cost_json(cost),
    }


def _mode_json(mode: ModeResult) -> dict[str, Any]:
    if not mode.available:
        return {"available": False, "unavailable_because": mode.reason, "applied": False, "proof": None}
    step = mode.step
    return {
        "available": True,
        "applied": mode.applied,
        "proof": mode.proof,
        "figures": dict(mode.figures),
        "step_seconds": None if step is None else {"median": step.estimate, **as_json(step)},
        "slowdown": _slowdown_json(mode),
        "slowdown_by_process": list(mode.ratio_by_process),
        "samples_per_second": mode.samples_per_second,
        "wait_seconds": mode.wait_seconds,
        "edge_share": mode.edge_share,
        "first_step_seconds": mode.first_step_seconds,
        "peak_memory_bytes": mode.peak_memory_bytes,
        "memory_ratio": mode.memory_ratio,
        "memory_measured_in": mode.memory_from or mode.name,
        "energy_joules_per_step": mode.energy_joules_per_step,
        "energy_unavailable_because": mode.energy_unavailable_because,
        "final_loss": mode.final_loss,
        "same_parameters_as_baseline": mode.same_parameters,
        "same_buffers_as_baseline": mode.same_buffers,
        "sat_out": mode.sat_out,
    }


def _slowdown_json(mode: ModeResult) -> dict[str, Any] | None:
    if mode.name == BASELINE and mode.step is not None:
        # By definition; so that every mode that was measured has the same entries.
        return {"ratio": 1.0, "low": 1.0, "high": 1.0, "n": mode.step.n, "verdict": "no difference"}
    if mode.slowdown is None:
        return None
    return {"ratio": mode.slowdown.estimate, **as_json(mode.slowdown), "verdict": mode.verdict}


def _cost_json(cost: AnomalyCost) -> dict[str, Any]:
    def share(interval: Interval | None) -> dict[str, Any] | None:
        return None if interval is None else {"share": interval.estimate, **as_json(interval)}

    return {
        "stacks_share": cost.stacks and cost.stacks.estimate,
        "checks_share": cost.checks and cost.checks.estimate,
        "host_syncs_per_step": cost.host_syncs_per_step,
        "stacks": share(cost.stacks),
        "checks": share(cost.checks),
        "total": share(cost.total),
        "checks_in_ops_share": cost.checks_in_ops,
        "outside_ops_share": cost.outside_ops,
        "extra_calls": dict(cost.check_ops),
    }
