"""From results to the page: what is shown, in which order, in which words. HTML and Markdown only draw it."""

from __future__ import annotations

from collections.abc import Sequence

from anomprof.environment.labels import describe
from anomprof.report import method, operators, units, verdict
from anomprof.report.mode_rows import ModeRow, energy_reason, is_result, mode_rows
from anomprof.report.page import Column, Page, Part, Plot, Points, Row, Section, Table
from anomprof.results import BASELINE, AnomalyCost, Results
from anomprof.stats import Interval


def page(results: Results, warnings: Sequence[str]) -> Page:
    """Returns the whole report of a bench run."""
    rows = mode_rows(results)
    doubts = _doubts(warnings)
    sections = (
        *((doubts,) if warnings else ()),
        _cost(rows, results),
        _slowdown_plot(results),
        _anomaly_cost(results),
        _steps(results),
        operators.section(results),
        _proofs(rows),
        *(() if warnings else (doubts,)),
        _workload(results),
        _environment(results),
        Section("How it was measured", (Points(method.paragraphs(results)),)),
    )
    return Page(
        title=f"What each mode costs this {verdict.step_name(results)}",
        headline=verdict.headline(results),
        sentences=verdict.sentences(results),
        origin=_origin(results),
        sections=tuple(section for section in sections if section.parts),
    )


def _origin(results: Results) -> str:
    facts = results.facts
    plan = facts.get("plan") or {}
    parts = [
        f"anomprof {units.text(facts['anomprof_version'])}" if facts.get("anomprof_version") else "anomprof",
        units.text(facts["started_utc"]) if facts.get("started_utc") else "start not recorded",
        f"device {units.text(plan['device'])}" if plan.get("device") else "device not recorded",
        f"{units.count(results.rounds)} {'round' if results.rounds == 1 else 'rounds'}",
    ]
    return " · ".join(parts)


def _cost(rows: Sequence[ModeRow], results: Results) -> Section:
    columns = (
        Column("mode"),
        Column("step time", True),
        Column("slowdown", True),
        Column("verdict"),
        Column("rounds", True),
        Column("samples/s", True),
        Column("peak memory", True),
        Column("memory ratio", True),
        Column("energy/step", True),
    )
    caption = (
        "Step time: median of all timed steps. Slowdown: how many times longer than the baseline's step, "
        "paired with the baseline turns around each of its own. In parentheses the 95 % interval. Peak "
        "memory: most tensor bytes alive at one time, and its ratio to the baseline's; counted, not "
        "sampled, so without an interval."
    )
    table = Table(
        caption,
        columns,
        tuple(
            Row(
                (
                    row.name,
                    row.step,
                    row.slowdown,
                    row.verdict,
                    row.rounds,
                    row.samples_per_second,
                    row.peak_memory,
                    row.memory_ratio,
                    row.energy,
                ),
                row.mark,
            )
            for row in rows
        ),
    )
    notes = [note for row in rows for note in row.notes]
    if reason := energy_reason(results):
        notes.append(f"Energy is not shown where it could not be measured: {reason}.")
    if not rows:
        return Section("Modes", ("The run was killed before it planned a mode.",))
    return Section("Modes", (table, Points(tuple(notes))) if notes else (table,))


def _slowdown_plot(results: Results) -> Section:
    shown = [mode.name for mode in results.modes if is_result(mode, results)]
    if not shown:
        return Section("Slowdowns", ())
    plot = Plot(
        "slowdowns",
        f"Slowdown of {', '.join(map(units.one_line, shown))} with 95 % intervals; the numbers are in the "
        "table above.",
        "Slowdown of each mode with its 95 % interval; 1 is the baseline. An interval that reaches into "
        "the shaded band (within 1 % of 1) is never called slower or faster. The shape of the point "
        "repeats the verdict: triangles for slower and faster, square for no difference, circle for not "
        "resolved.",
    )
    return Section("Slowdowns", (plot,))


def _anomaly_cost(results: Results) -> Section:
    title = "Where anomaly mode's cost goes"
    cost, anomaly = results.anomaly_cost, results.mode("anomaly")
    if cost is None or anomaly is None:
        return Section(title, ())
    if not is_result(anomaly, results):
        return Section(
            title, ("Not shown: there is no proof that anomaly mode was on, or the baseline is not plain.",)
        )
    stacks = results.mode("anomaly-stacks")
    has_parts = stacks is not None and is_result(stacks, results)
    rows = [
        ("all of it", _share(cost.total), "anomaly against baseline"),
        (
            "stacks: a Python stack for every autograd node",
            _share(cost.stacks if has_parts else None),
            "anomaly-stacks against baseline",
        ),
        (
            "checks: looking for NaN in every gradient",
            _share(cost.checks if has_parts else None),
            "anomaly against anomaly-stacks",
        ),
        (
            "checks once more, from the op rows",
            _lone_share(cost.checks_in_ops),
            "one profiled step of each, no interval",
        ),
        (
            "what no op row shows: stacks, and Python around ops",
            _lone_share(cost.outside_ops),
            "all of it less the op rows",
        ),
    ]
    columns = (Column("part"), Column("share of a baseline step", True), Column("how it is known"))
    caption = "Extra time of anomaly mode as a fraction of a baseline step; in parentheses the 95 % interval."
    parts: list[Part] = [Table(caption, columns, tuple(Row(cells) for cells in rows))]
    if sentence := _extra_calls(cost):
        parts.append(sentence)
    return Section(title, tuple(parts))


def _extra_calls(cost: AnomalyCost) -> str:
    if not cost.check_ops:
        return ""
    calls = ", ".join(
        f"{units.one_line(op)} {units.count(extra, signed=True)}" for op, extra in cost.check_ops.items()
    )
    syncs = ""
    if cost.host_syncs_per_step is not None:
        more = units.count(cost.host_syncs_per_step)
        syncs = f" Host syncs (the host reads a value and waits for it): {more} more in a step."
    return f"Extra calls in one step: {calls}.{syncs}"


def _share(interval: Interval | None) -> str:
    return units.share(interval) if interval else units.NONE


def _lone_share(value: float | None) -> str:
    return units.NONE if value is None else f"{value:.2f}"


def _steps(results: Results) -> Section:
    baseline = results.mode(BASELINE)
    if not any(mode.step for mode in results.modes):
        return Section("Step times as they came", ())
    parts: list[Part] = [
        Plot(
            "steps",
            "Step time of each mode against the time since the first step.",
            "Every timed step against the time since the run's first step, the baseline in grey behind "
            "each mode. Where a mode took many steps, a point is the median of several in a row.",
        )
    ]
    if baseline and baseline.step and baseline.wait_seconds is not None:
        share = baseline.wait_seconds / baseline.step.estimate
        parts.append(
            f"Waiting for data: {units.seconds(baseline.wait_seconds)} before a baseline step (median), "
            f"which is {units.percent(share)} of the step's own time and not part of it."
        )
    return Section("Step times as they came", tuple(parts))


def _proofs(rows: Sequence[ModeRow]) -> Section:
    columns = (
        Column("mode"),
        Column("what it is"),
        Column("proof that it was on"),
        Column("same numbers as baseline"),
        Column("final loss", True),
        Column("entering and leaving", True),
        Column("first step", True),
    )
    caption = (
        "Same numbers: whether parameters and buffers ended bitwise where the baseline ends (for the "
        "baseline: whether it repeats itself); (!) marks a mode that promised it and did not. Entering and "
        "leaving: the share of its steps that a mode spends there. First step: the first ever taken in this "
        "mode, with its one-time costs; not part of any result."
    )
    shown = tuple(
        Row(
            (row.name, row.summary, row.proof, row.same_numbers, row.final_loss, row.edges, row.first_step),
            row.mark,
        )
        for row in rows
    )
    title = "Was each mode on, and did it change the numbers?"
    return Section(title, (Table(caption, columns, shown),) if shown else ())


def _doubts(warnings: Sequence[str]) -> Section:
    if not warnings:
        return Section("What to doubt", ("Nothing that anomprof looks for: see how it was measured, below.",))
    return Section("What to doubt", (Points(tuple(units.one_line(warning) for warning in warnings)),))


def _workload(results: Results) -> Section:
    workload, plan = results.facts.get("workload") or {}, results.facts.get("plan") or {}
    facts: dict[str, str] = {}
    if "name" in workload:
        facts["workload"] = units.text(workload["name"])
    if "parameter_count" in workload:
        facts["parameters"] = units.count(workload["parameter_count"])
    if workload.get("samples_per_batch"):
        facts["samples per batch"] = units.count(workload["samples_per_batch"])
    for key, value in (workload.get("facts") or {}).items():
        facts[units.one_line(str(key))] = units.text(value)
    for key in ("dtype", "optimizer", "seed", "data"):
        if plan.get(key) is not None:
            facts[key] = str(plan[key]) if key == "seed" else units.text(plan[key])
    for key, value in (("--budget", plan.get("budget_seconds")), ("command", results.facts.get("command"))):
        if value is not None:
            facts[key] = units.seconds(value) if isinstance(value, int | float) else units.text(value)
    return Section("Workload", _table("What was trained.", facts))


def _environment(results: Results) -> Section:
    environment = results.facts.get("environment") or {}
    facts = {label: units.one_line(text) for label, text in describe(environment)}
    telemetry = results.facts.get("telemetry") or {}
    if telemetry.get("name"):
        facts["telemetry"] = units.text(telemetry["name"])
    elif telemetry.get("unavailable_because"):
        facts["telemetry"] = f"none: {units.text(telemetry['unavailable_because'])}"
    if telemetry.get("notes"):
        facts["notes on telemetry"] = units.text(telemetry["notes"])
    return Section("Environment", _table("Where it was measured.", facts))


def _table(caption: str, facts: dict[str, str]) -> tuple[Part, ...]:
    rows = tuple(Row(pair) for pair in facts.items())
    return (Table(caption, (Column("what"), Column("value")), rows),) if rows else ()
