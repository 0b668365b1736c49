"""The content of ``results.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anomprof.results.anomaly_cost import AnomalyCost
from anomprof.results.derivation import Results
from anomprof.results.mode_result import ModeResult
from anomprof.results.pairs import BASELINE
from anomprof.stats import Interval, as_json

SCHEMA = "anomprof.results/1"


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
