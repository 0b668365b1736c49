"""Where anomaly mode's extra time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anomprof.record import OpRow, Record
from anomprof.results.pairs import BASELINE, Pairs
from anomprof.stats import Interval, paired_difference


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


def split_cost(
    record: Record,
    pairs: Pairs,
    slowdowns: Mapping[str, Interval],
    ops: Mapping[str, Sequence[OpRow]],
) -> AnomalyCost | None:
    """Returns how the cost divides, or None where anomaly mode was not measured."""
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
