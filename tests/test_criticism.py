from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from anomprof.criticism import criticise
from anomprof.record import Record, Sample, Step, Turn
from anomprof.results import derive

GOOD_MODE = {"applied": True, "proof": "seen", "keeps_numbers": True}


def quiet_record(
    seconds: Callable[[str, int], float] = lambda mode, round_: (
        (1.2 if mode == "anomaly" else 1.0) + round_ % 3 * 1e-3
    ),
    rounds: int = 12,
    wait_seconds: float = 0.0,
) -> Record:
    """A record in which there is nothing to doubt, unless a step's seconds by mode and round give cause."""
    turns = []
    for round_ in range(rounds):
        for position, mode in enumerate(("baseline", "anomaly", "baseline")):
            start = 10.0 * round_ + 4 * position
            step = Step(0, start, wait_seconds, seconds(mode, round_), 0.0)
            facts = {"final_loss": 1.0, "parameters_digest": "a", "buffers_digest": "b"}
            turns.append(Turn(0, round_, position, mode, start, (step,), facts))
    facts = {"status": "finished", "stop_reason": "the budget of 180 s was spent"}
    modes = {"baseline": GOOD_MODE, "anomaly": GOOD_MODE}
    return Record(facts, modes, tuple(turns), (), ())


def warnings_of(record: Record) -> tuple[str, ...]:
    return criticise(derive(record), record)


def only_warning(record: Record) -> str:
    (warning,) = warnings_of(record)
    return warning


def with_facts(record: Record, **facts: object) -> Record:
    return replace(record, facts={**record.facts, **facts})


def with_mode(record: Record, name: str, **facts: object) -> Record:
    return replace(record, modes={**record.modes, name: {**record.modes[name], **facts}})


def with_samples(record: Record, quantity: str, *values: float) -> Record:
    return replace(record, samples=tuple(Sample(float(i), "host", quantity, v) for i, v in enumerate(values)))


def with_digest(record: Record, mode: str, key: str, digest: str, rounds: range = range(99)) -> Record:
    return replace(
        record,
        turns=tuple(
            replace(turn, facts={**turn.facts, key: digest})
            if turn.mode == mode and turn.round in rounds
            else turn
            for turn in record.turns
        ),
    )


def test_a_good_run_gets_no_warning() -> None:
    assert warnings_of(quiet_record()) == ()


def test_a_noisy_baseline_is_named_with_its_spread() -> None:
    # Six steps of 0.8 s, twelve of 1.0 s, six of 1.2 s, both modes alike: the quartiles (at places
    # 6.25 and 18.75 of 24) are 0.85 and 1.15 s, so the spread is 0.3 / 1.0, and the ratio stays 1.
    record = quiet_record(lambda mode, round_: (1.0, 0.8, 1.0, 1.2)[round_ % 4])
    assert "spreads over 30 % of their median" in only_warning(record)


def test_other_programs_are_named_with_their_share() -> None:
    assert "Other programs used 30 %" in only_warning(
        with_samples(quiet_record(), "other_cpu_ratio", 0.1, 0.3, 0.4)
    )


def test_a_load_above_the_cores_is_named() -> None:
    record = with_facts(quiet_record(), environment={"logical_cores": 2})
    assert "load average was 5.0 on 2 cores" in only_warning(
        with_samples(record, "load_average", 4.0, 5.0, 6.0)
    )
    assert warnings_of(with_samples(record, "load_average", 2.1)) == ()


def test_throttling_is_named_with_its_reason_and_idling_is_not_throttling() -> None:
    # 0x1 is idle, 0x2 clocks set by someone, 0x20 thermal slowdown by software.
    assert warnings_of(with_samples(quiet_record(), "throttle_reasons", 0x0, 0x1, 0x2)) == ()
    warning = only_warning(with_samples(quiet_record(), "throttle_reasons", 0x0, 0x1, 0x22, 0x0))
    assert "throttled in 25 % of the samples (thermal slowdown by software)" in warning


def test_few_rounds_are_named_but_not_for_a_mode_that_sat_out() -> None:
    record = quiet_record(rounds=4)
    assert "anomaly (4)" in only_warning(record)
    assert warnings_of(with_mode(record, "anomaly", sat_out="beyond doubt")) == ()


def test_a_slow_first_round_is_named() -> None:
    record = quiet_record(lambda mode, round_: 1.5 if round_ == 0 else 1.0)
    assert "its baseline took 1.50x the time of later rounds" in only_warning(record)


def test_a_drift_is_named_with_its_size() -> None:
    # Rounds 1 to 4 against rounds 8 to 11; 1.0, 1.0, ..., then 1.125 from round 8 on.
    record = quiet_record(lambda mode, round_: 1.0 if round_ < 8 else 1.125)
    assert any("became 12 % slower" in warning for warning in warnings_of(record))


def test_wide_intervals_are_named_with_the_reason_for_stopping() -> None:
    record = quiet_record(lambda mode, round_: 1.0 if mode == "baseline" else 1.1 + 0.1 * (round_ % 2))
    warning = only_warning(record)
    assert "wider than +-2 % though the budget of 180 s was spent: anomaly (+-" in warning


def test_debug_switches_are_listed() -> None:
    record = with_facts(quiet_record(), environment={"debug_switches": ["CUDA_LAUNCH_BLOCKING=1"]})
    assert "left on: CUDA_LAUNCH_BLOCKING=1" in only_warning(record)


def test_a_baseline_that_does_not_repeat_itself_is_named() -> None:
    record = with_digest(quiet_record(), "baseline", "parameters_digest", "c", range(1))
    assert "The baseline did not end bitwise the same" in only_warning(record)


def test_a_broken_promise_to_keep_the_parameters_is_named() -> None:
    record = with_digest(quiet_record(), "anomaly", "parameters_digest", "c")
    assert "anomaly promises to leave the trained numbers alone" in only_warning(record)
    assert warnings_of(with_mode(record, "anomaly", keeps_numbers=False)) == ()


def test_other_buffers_break_no_promise() -> None:
    assert warnings_of(with_digest(quiet_record(), "anomaly", "buffers_digest", "c")) == ()


def test_a_mode_without_proof_is_named() -> None:
    record = with_mode(quiet_record(), "anomaly", applied=False, proof="0 nodes checked")
    assert "anomaly gave no proof that it was on (0 nodes checked)" in only_warning(record)


def test_a_baseline_that_is_not_plain_spoils_every_ratio() -> None:
    record = with_mode(quiet_record(), "baseline", applied=False, proof="anomaly mode was on")
    assert "The baseline is not a plain step (anomaly mode was on)" in only_warning(record)


@pytest.mark.parametrize(
    ("status", "words"),
    [("interrupted", "was interrupted"), ("running", "did not end by itself"), (None, "did not end")],
)
def test_an_unfinished_run_is_named(status: str | None, words: str) -> None:
    assert words in only_warning(with_facts(quiet_record(), status=status))


def test_quick_runs_say_that_they_measured_something_smaller() -> None:
    record = with_facts(quiet_record(), plan={"quick": True, "image_size": 64})
    assert "smaller step (64 px)" in only_warning(record)


def test_a_long_wait_for_data_is_named_with_its_share() -> None:
    assert "adds 50 % to every baseline step" in only_warning(quiet_record(wait_seconds=0.5))


def test_a_loss_that_is_not_finite_is_named() -> None:
    record = quiet_record()
    turns = tuple(
        replace(turn, facts={**turn.facts, "final_loss": None}) if turn.mode == "anomaly" else turn
        for turn in record.turns
    )
    assert "not finite after the steps of anomaly" in only_warning(replace(record, turns=turns))
