from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anomprof.record import load
from anomprof.report import verdict
from anomprof.results import Results, derive
from tests.report.sample_record import FACTS, write_record


def results_of(tmp_path: Path, factors: dict[str, float], **options: Any) -> Results:
    return derive(load(write_record(tmp_path / "run", factors=factors, **options)))


def test_slower_anomaly_mode_is_split_and_advised_against(tmp_path: Path) -> None:
    results = results_of(
        tmp_path, {"baseline": 1.0, "anomaly": 1.27, "anomaly-stacks": 1.06}, noise=1e-6, rounds=6
    )
    # Noise of a millionth leaves exact ratios: 0.06 for stacks and 1.27 - 1.06 = 0.21 for checks.
    assert verdict.headline(results) == (
        "Anomaly mode makes this ResNet-50 step 1.270x slower (95 % 1.270-1.270): "
        "stacks 0.060, checks 0.210; leave it off outside debugging."
    )


def test_without_the_second_mode_the_price_is_not_split(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.27})
    assert "stacks" not in verdict.headline(results)
    assert verdict.headline(results).endswith("; leave it off outside debugging.")


def test_no_difference_is_said_and_no_advice_given(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.0}, noise=0.001)
    assert verdict.headline(results).startswith(
        "Anomaly mode makes no difference to the time of this ResNet-50 step: 1."
    )
    assert "leave it off" not in verdict.headline(results)


def test_what_is_not_resolved_is_not_ranked(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.03}, noise=0.2)
    assert verdict.headline(results).startswith(
        "What anomaly mode costs this ResNet-50 step is not resolved: "
    )
    assert "slower" not in verdict.headline(results)


def test_one_round_gives_no_interval(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.3}, rounds=1)
    assert verdict.headline(results) == (
        "Anomaly mode ran in one round only (1.3x), which is too little for a verdict on this ResNet-50 step."
    )


def test_few_rounds_make_a_verdict_provisional(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.3}, rounds=3)
    assert verdict.headline(results).endswith("(Provisional: 3 rounds only.)")


def test_a_part_of_the_cost_that_may_be_nothing_is_not_given_as_a_number(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.3, "anomaly-stacks": 1.0})
    assert "stacks not resolved" in verdict.headline(results)


def test_an_instrument_that_came_out_faster_is_doubted(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 0.8})
    assert "doubt the measurement" in verdict.headline(results)


def test_anomaly_mode_that_is_not_available_gets_its_reason(tmp_path: Path) -> None:
    away = {"anomaly": {"available": False, "reason": "it is switched off in this build."}}
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.0}, mode_facts=away)
    assert verdict.headline(results) == (
        "Anomaly mode is not available here: it is switched off in this build."
    )


def test_without_anomaly_mode_in_the_plan_the_first_mode_leads(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "clip-norm": 1.1}, noise=1e-6)
    assert verdict.headline(results) == (
        "Clipping the gradient norm costs 1.100x the time (95 % 1.100-1.100)."
    )


def test_a_baseline_alone_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.report.sample_record.UNAVAILABLE", {})
    results = results_of(tmp_path, {"baseline": 1.0}, noise=1e-6)
    assert verdict.headline(results) == (
        "This ResNet-50 step takes 492.0 ms (492.0-492.0); no other mode was measured."
    )


def test_a_baseline_with_anomaly_mode_on_supports_no_claim(tmp_path: Path) -> None:
    on = {"baseline": {"applied": False, "proof": "the workload switches anomaly mode on itself"}}
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.0}, mode_facts=on)
    assert verdict.headline(results).startswith("Nothing can be said about this ResNet-50 step")
    assert verdict.sentences(results) == ()


def test_checkpointing_is_time_against_memory(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "checkpoint": 1.31}, noise=1e-6)
    assert verdict.headline(results) == (
        "Checkpointing costs 1.310x the time (95 % 1.310-1.310) and needs 0.62x the memory."
    )


def test_slow_amp_comes_with_the_reason(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.2, "amp-bf16": 11.0})
    amp = next(
        sentence for sentence in verdict.sentences(results) if sentence.startswith("AMP with bfloat16")
    )
    assert "this CPU has no bfloat16 units" in amp


def test_combinations_and_strange_modes_have_names() -> None:
    assert verdict.label("profiler+anomaly") == "torch.profiler with anomaly mode"
    assert verdict.label("amp-bf16+clip-norm") == "AMP with bfloat16 with clipping the gradient norm"
    assert verdict.label("mine") == "Mode mine"


def test_a_workload_without_a_name_is_a_training_step(tmp_path: Path) -> None:
    facts = {key: value for key, value in FACTS.items() if key not in ("workload", "plan")}
    results = results_of(tmp_path, {"baseline": 1.0, "anomaly": 1.27}, facts=facts)
    assert verdict.headline(results).startswith("Anomaly mode makes this training step 1.2")
