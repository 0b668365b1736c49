"""One row of text per mode: the single source of what HTML, Markdown and terminal say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anomprof.report import units
from anomprof.results import BASELINE, ModeResult, Results
from anomprof.stats import Interval


@dataclass(frozen=True)
class ModeRow:
    """A mode's row.

    Attributes:
        short_step: The step time alone, where the room is short.
        slowdown: Ratio to the baseline with its interval.
        verdict: One of the verdicts, or what stands in their place: ``baseline``, ``no proof``,
            ``not available``, ``not measured``.
        rounds: Rounds in which both this mode and the baseline ran.
        same_numbers: Whether training ended bitwise where the baseline ends (for the baseline:
            whether it repeats itself): ``yes``, ``no``, ``buffers differ``,
            ``no (!)`` where the mode promised the same parameters, ``-`` where it is not known.
        notes: Whole sentences that explain the row.
        mark: The verdict as one word, for colours.
    """

    name: str
    summary: str
    step: str = units.NONE
    short_step: str = units.NONE
    slowdown: str = units.NONE
    verdict: str = units.NONE
    rounds: str = units.NONE
    samples_per_second: str = units.NONE
    peak_memory: str = units.NONE
    memory_ratio: str = units.NONE
    energy: str = units.NONE
    edges: str = units.NONE
    first_step: str = units.NONE
    final_loss: str = units.NONE
    proof: str = units.NONE
    same_numbers: str = units.NONE
    notes: tuple[str, ...] = ()
    mark: str = ""


def is_result(mode: ModeResult, results: Results) -> bool:
    """Whether a mode's slowdown may be shown: it ran, it was on, and the baseline was a plain step."""
    baseline = results.mode(BASELINE)
    return (
        mode.available and mode.applied and mode.slowdown is not None and bool(baseline and baseline.applied)
    )


def mode_rows(results: Results) -> tuple[ModeRow, ...]:
    """Returns the rows in the order of the plan."""
    return tuple(_row(mode, results) for mode in results.modes)


def energy_reason(results: Results) -> str | None:
    """Returns why energies are missing, once for all modes; None where none is missing."""
    reasons = {
        mode.energy_unavailable_because: None
        for mode in results.modes
        if mode.step is not None and mode.energy_joules_per_step is None and mode.energy_unavailable_because
    }
    return "; ".join(units.one_line(str(reason)) for reason in reasons) or None


def _row(mode: ModeResult, results: Results) -> ModeRow:
    name, summary = units.one_line(mode.name), units.one_line(mode.summary)
    if not mode.available:
        reason = units.one_line(mode.reason or "no reason was recorded").rstrip(".")
        note = f"{name} is not available here: {reason}."
        return ModeRow(name, summary, verdict="not available", notes=(note,), mark="missing")
    if mode.step is None:
        note = f"{name} was not measured: the run ended before one of its turns was complete."
        return ModeRow(name, summary, verdict="not measured", notes=(note,), mark="missing")
    if not mode.applied:
        note = f"{name} is not shown as a result: there is no proof that it was on ({_proof(mode)})."
        return ModeRow(name, summary, verdict="no proof", proof=_proof(mode), notes=(note,), mark="missing")
    verdict, slowdown = _verdict(mode, results)
    return ModeRow(
        name,
        summary,
        step=units.seconds_with_interval(mode.step),
        short_step=units.seconds(mode.step.estimate),
        slowdown=slowdown,
        verdict=verdict,
        rounds=units.count(mode.slowdown.n) if mode.slowdown else units.NONE,
        samples_per_second=_samples_per_second(mode, mode.step),
        peak_memory=units.size(mode.peak_memory_bytes) if mode.peak_memory_bytes else units.NONE,
        memory_ratio=units.memory_ratio(mode.memory_ratio) if mode.memory_ratio else units.NONE,
        energy=_energy(mode),
        edges=units.NONE if mode.edge_share is None else units.percent(mode.edge_share),
        first_step=units.seconds(mode.first_step_seconds) if mode.first_step_seconds else units.NONE,
        final_loss="not finite" if mode.final_loss is None else f"{mode.final_loss:.6g}",
        proof=_proof(mode),
        same_numbers=_same_numbers(mode),
        notes=tuple(_notes(mode)),
        mark=verdict.replace(" ", "-"),
    )


def _verdict(mode: ModeResult, results: Results) -> tuple[str, str]:
    if mode.name == BASELINE:
        return "baseline", "1"
    if mode.slowdown is None or mode.verdict is None:
        return "not measured", units.NONE
    if not is_result(mode, results):
        return "not comparable", units.NONE
    return mode.verdict, units.ratio(mode.slowdown)


def _samples_per_second(mode: ModeResult, step: Interval) -> str:
    if not mode.samples_per_second:
        return units.NONE
    samples = mode.samples_per_second * step.estimate
    # The step's interval decides how many digits mean something.
    rate = Interval(mode.samples_per_second, samples / step.high, samples / step.low, step.n)
    return (
        units.ratio_estimate(rate)
        if rate.estimate < 100 and rate.n > 1
        else units.three_digits(rate.estimate)
    )


def _energy(mode: ModeResult) -> str:
    if mode.energy_joules_per_step is None:
        return units.NONE
    return f"{units.three_digits(mode.energy_joules_per_step)} J"


def _proof(mode: ModeResult) -> str:
    return units.one_line(mode.proof) or "nothing was recorded"


def _same_numbers(mode: ModeResult) -> str:
    if mode.same_parameters is None:
        return units.NONE
    if mode.same_parameters and mode.same_buffers is not False:
        return "yes"
    if mode.same_parameters:
        return "buffers differ"
    return "no (!)" if mode.keeps_numbers else "no"


def _notes(mode: ModeResult) -> Sequence[str]:
    name, notes = units.one_line(mode.name), []
    if mode.sat_out:
        notes.append(f"{name} sat out later rounds: {units.one_line(mode.sat_out).rstrip('.')}.")
    if mode.same_parameters and mode.same_buffers is False:
        notes.append(
            f"{name} ends with the baseline's parameters but with other buffers, such as batch-norm "
            "statistics that are updated once more where the forward pass is recomputed."
        )
    if mode.memory_from:
        notes.append(
            f"Memory and ops of {name} come from the profiled pass of {units.one_line(mode.memory_from)}."
        )
    return notes
