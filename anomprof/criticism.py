"""The tool criticises its own numbers: what a careful reader should doubt, and what would help. No torch.

Each check returns warnings with the figure that caused them; a run in which all is well gets none.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anomprof.record import Record, Turn
from anomprof.results import BASELINE, ModeResult, Results, is_complete, turn_seconds
from anomprof.stats import NARROW, ROUNDS_TO_TRUST

# On a quiet machine the middle half of the baseline's steps lies within a few percent.
_NOISY_SPREAD = 0.10
_OTHER_CPU_RATIO = 0.15
# anomprof's own threads make a load of about one per core.
_LOAD_PER_CORE = 1.25
_SLOW_FIRST_ROUND = 1.10
_DRIFT = 0.10
_LONG_WAIT = 0.20
_THROTTLED_SHARE = 0.01

# NVML's current clocks event reasons. Being idle and clocks that someone set are no throttling.
_THROTTLE_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown by software",
    0x40: "thermal slowdown by hardware",
    0x80: "power brake",
}


def criticise(results: Results, record: Record) -> tuple[str, ...]:
    """Returns warnings, the gravest first; empty where nothing is to be doubted."""
    baseline = [turn for turn in record.turns if turn.mode == BASELINE and is_complete(turn)]
    return (
        *_unfinished(results),
        *_unproven(results),
        *_numbers_changed(results),
        *_loss(results),
        *_skipped(results),
        *_left_on(results.facts),
        *_noise(baseline),
        *_other_programs(record),
        *_throttling(record),
        *_first_round(baseline),
        *_drift(baseline),
        *_few_rounds(results),
        *_wide_intervals(results),
        *_waiting(results),
        *_quick(results.facts),
    )


def _unfinished(results: Results) -> Iterator[str]:
    status = results.facts.get("status")
    if status == "finished":
        return
    what = (
        "was interrupted" if status == "interrupted" else "did not end by itself (killed, or still running)"
    )
    yield f"The run {what}; all shown here comes from {_rounds(results.rounds)}. Run it again for the rest."


def _unproven(results: Results) -> Iterator[str]:
    for mode in _measured(results, and_baseline=True):
        if mode.applied:
            continue
        seen = mode.proof or "nothing was recorded"
        if mode.name == BASELINE:
            yield (
                f"The baseline is not a plain step ({seen}), so every ratio compares with something else; "
                "make the workload a plain step and run again."
            )
        else:
            yield (
                f"{mode.name} gave no proof that it was on ({seen}), so its times are not shown as a result; "
                "check that this workload does what the mode acts on."
            )


def _numbers_changed(results: Results) -> Iterator[str]:
    baseline = results.mode(BASELINE)
    if baseline is not None and baseline.same_parameters is False:
        yield (
            "The baseline did not end bitwise the same in every turn, so no mode can be checked against it; "
            "the workload keeps something of its own from step to step (a generator, a schedule, an "
            "augmentation), or its ops are not deterministic (torch.use_deterministic_algorithms(True) "
            "would tell)."
        )
    for mode in _measured(results):
        # No mode promises the buffers: recomputation updates batch-norm statistics twice.
        if not mode.keeps_numbers or mode.same_parameters is not False:
            continue
        yield (
            f"{mode.name} promises to leave the trained numbers alone but ended with other parameters than "
            "the baseline; its steps did other work, so do not trust its slowdown before you know why."
        )


def _skipped(results: Results) -> Iterator[str]:
    for mode in _measured(results):
        skipped = mode.figures.get("timed_skipped_steps", 0)
        if skipped:
            yield (
                f"{mode.name} skipped {skipped:g} optimizer steps in its timed turns, since gradients "
                f"overflowed at a scale of {mode.figures.get('scale', 0):g}; such a step is shorter than a "
                "real one."
            )


def _loss(results: Results) -> Iterator[str]:
    # JSON has no NaN and no infinity: a complete turn without a loss had one of these.
    bad = [mode.name for mode in _measured(results, and_baseline=True) if mode.final_loss is None]
    if bad:
        yield (
            f"The loss was not finite after the steps of {', '.join(bad)}: the times are those of a model "
            "that no longer trains; check the learning rate and the data."
        )


def _left_on(facts: Mapping[str, Any]) -> Iterator[str]:
    switches = (facts.get("environment") or {}).get("debug_switches") or ()
    if switches:
        yield (
            f"Debug switches were left on: {', '.join(map(str, switches))}. They slow every mode, the "
            "baseline too; switch them off and run again."
        )


def _noise(baseline: Sequence[Turn]) -> Iterator[str]:
    steps = [step.step_seconds for turn in baseline for step in turn.steps]
    if len(steps) < 4:
        return
    low, middle, high = statistics.quantiles(steps, n=4)
    spread = (high - low) / middle
    if spread > _NOISY_SPREAD:
        yield (
            f"The machine was noisy: the middle half of the baseline's steps spreads over {_percent(spread)} "
            f"of their median ({_percent(_NOISY_SPREAD)} or less is usual); close other programs or give a "
            "larger --budget."
        )


def _other_programs(record: Record) -> Iterator[str]:
    others = _median_sample(record, "other_cpu_ratio")
    if others is not None and others > _OTHER_CPU_RATIO:
        yield (
            f"Other programs used {_percent(others)} of the CPU while this ran; close them, or measure when "
            "they are done."
        )
    cores = (record.facts.get("environment") or {}).get("logical_cores")
    load = _median_sample(record, "load_average")
    if cores and load is not None and load > _LOAD_PER_CORE * cores:
        yield (
            f"The load average was {load:.1f} on {cores} cores, so processes waited for each other; "
            "stop other work, or use fewer threads (OMP_NUM_THREADS)."
        )


def _median_sample(record: Record, quantity: str) -> float | None:
    values = [sample.value for sample in record.samples if sample.quantity == quantity]
    return statistics.median(values) if values else None


def _throttling(record: Record) -> Iterator[str]:
    masks = [int(sample.value) for sample in record.samples if sample.quantity == "throttle_reasons"]
    if not masks:
        return
    throttled = [mask for mask in masks if any(mask & bit for bit in _THROTTLE_REASONS)]
    share = len(throttled) / len(masks)
    if share > _THROTTLED_SHARE:
        names = [name for bit, name in _THROTTLE_REASONS.items() if any(mask & bit for mask in throttled)]
        yield (
            f"The GPU was throttled in {_percent(share)} of the samples ({', '.join(names)}), so its clock "
            "was not steady; improve the cooling or lock the clocks (nvidia-smi -lgc)."
        )


def _first_round(baseline: Sequence[Turn]) -> Iterator[str]:
    first = [turn_seconds(turn) for turn in baseline if turn.round == 0]
    later = [turn_seconds(turn) for turn in baseline if turn.round > 0]
    if not first or len(later) < 2:
        return
    excess = statistics.median(first) / statistics.median(later)
    if excess > _SLOW_FIRST_ROUND:
        yield (
            f"The first round was slow: its baseline took {excess:.2f}x the time of later rounds, so the "
            "machine was still warming up; with 4 or more rounds the trimmed mean leaves it out, with fewer "
            "give a larger --budget."
        )


def _drift(baseline: Sequence[Turn]) -> Iterator[str]:
    times = [turn_seconds(turn) for turn in sorted(baseline, key=lambda turn: turn.started)]
    third = len(times) // 3
    if third < 2:
        return
    # The first round has a warning of its own.
    change = statistics.median(times[-third:]) / statistics.median(times[1 : third + 1]) - 1
    if abs(change) > _DRIFT:
        yield (
            f"The machine drifted: the baseline's steps became {_percent(abs(change))} "
            f"{'slower' if change > 0 else 'faster'} from the first to the last third of the run. Slowdowns "
            "are paired within rounds and hardly suffer; do not compare the step times with those of other "
            "runs."
        )


def _few_rounds(results: Results) -> Iterator[str]:
    few = [mode for mode in _measured(results) if _is_rough(mode)]
    if few:
        names = ", ".join(f"{mode.name} ({mode.slowdown.n if mode.slowdown else 0})" for mode in few)
        yield (
            f"Too few rounds for a trustworthy interval (fewer than {ROUNDS_TO_TRUST}): {names}; "
            "give a larger --budget, or fewer modes with --modes."
        )


def _is_rough(mode: ModeResult) -> bool:
    return mode.slowdown is not None and mode.slowdown.n < ROUNDS_TO_TRUST and not mode.sat_out


def _wide_intervals(results: Results) -> Iterator[str]:
    wide = [
        f"{mode.name} (+-{_percent(mode.slowdown.half_width)})"
        for mode in _measured(results)
        if mode.slowdown and not mode.sat_out and not _is_rough(mode) and not mode.slowdown.is_narrow
    ]
    if wide:
        reason = results.facts.get("stop_reason")
        yield (
            f"Intervals are still wider than +-{_percent(NARROW)}{f' though {reason}' if reason else ''}: "
            f"{', '.join(wide)}; give a larger --budget."
        )


def _waiting(results: Results) -> Iterator[str]:
    baseline = results.mode(BASELINE)
    if baseline is None or baseline.step is None or baseline.wait_seconds is None:
        return
    share = baseline.wait_seconds / baseline.step.estimate
    if share > _LONG_WAIT:
        yield (
            f"Waiting for data adds {_percent(share)} to every baseline step. Slowdowns are of the step "
            "alone, so the whole training is slowed by less; faster loading (more workers) would gain more "
            "than any mode costs."
        )


def _quick(facts: Mapping[str, Any]) -> Iterator[str]:
    plan = facts.get("plan") or {}
    if plan.get("quick"):
        size = plan.get("image_size")
        if size:
            what = f"--quick measured a smaller step ({size} px) than usual; slowdowns differ at full size"
        else:
            what = "--quick measured for a short time only; intervals are wider than they need be"
        yield f"{what}, so run without --quick before you decide on them."


def _measured(results: Results, *, and_baseline: bool = False) -> list[ModeResult]:
    return [
        mode
        for mode in results.modes
        if mode.available and mode.step is not None and (and_baseline or mode.name != BASELINE)
    ]


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.{1 if fraction < 0.095 else 0}f}".removesuffix(".0") + " %"
