import math

import pytest

from anomprof.record import RecordWriter, Step, Turn, load
from anomprof.results import derive, is_complete, live_slowdowns, pair_up, to_json, turn_seconds


def turn(mode, *seconds, round_=0, process=0, started=0.0, **facts):
    steps = tuple(Step(n, started + n, 0.0, value, 0.0) for n, value in enumerate(seconds))
    return Turn(process, round_, 0, mode, started, steps, {"final_loss": 1.0, **facts})


def run(*turns):
    """Turns one after the other, a second apart."""
    return [
        Turn(t.process, t.round, t.position, t.mode, float(n), t.steps, t.facts) for n, t in enumerate(turns)
    ]


def test_a_turn_counts_by_the_median_of_its_steps():
    assert turn_seconds(turn("baseline", 1.0, 9.0, 2.0)) == 2.0


def test_a_turn_is_divided_by_the_geometric_mean_of_the_baselines_around_it():
    pairs = pair_up(run(turn("baseline", 1.0), turn("a", 6.0), turn("baseline", 4.0)))
    # sqrt(1 * 4) = 2, and 6 / 2 = 3.
    assert [pair.ratio for pair in pairs["a"][0]] == pytest.approx([3.0])


def test_the_nearest_baselines_count_not_those_of_the_same_round():
    turns = run(
        turn("baseline", 1.0),
        turn("baseline", 2.0),
        turn("a", 4.0),
        turn("b", 8.0),
        turn("baseline", 2.0, round_=1),
        turn("baseline", 99.0, round_=1),
    )
    pairs = pair_up(turns)
    assert pairs["a"][0][0].ratio == pytest.approx(2.0)
    assert pairs["b"][0][0].ratio == pytest.approx(4.0)


def test_a_drift_of_the_machine_does_not_matter():
    # The machine becomes 20 % slower from turn to turn; the mode costs 1.5 all the same.
    speeds = [1.2**n for n in range(21)]
    turns = [
        turn("baseline" if n % 2 == 0 else "a", s * (1 if n % 2 == 0 else 1.5)) for n, s in enumerate(speeds)
    ]
    slowdown = live_slowdowns(run(*turns))["a"]
    assert (slowdown.estimate, slowdown.low, slowdown.high) == pytest.approx((1.5, 1.5, 1.5))


def test_a_last_turn_without_a_baseline_after_it_takes_the_one_before():
    pairs = pair_up(run(turn("baseline", 2.0), turn("a", 3.0)))
    assert pairs["a"][0][0].ratio == pytest.approx(1.5)


def test_processes_are_paired_each_on_their_own():
    turns = [
        *run(turn("baseline", 1.0), turn("a", 2.0)),
        *run(turn("baseline", 10.0, process=1), turn("a", 30.0, process=1)),
    ]
    pairs = pair_up(turns)
    assert pairs["a"][0][0].ratio == pytest.approx(2.0)
    assert pairs["a"][1][0].ratio == pytest.approx(3.0)


def test_a_turn_that_was_cut_off_does_not_count():
    cut = Turn(0, 0, 0, "a", 1.0, (Step(0, 1.0, 0.0, 5.0, 0.0),), {})
    assert not is_complete(cut)
    assert pair_up([*run(turn("baseline", 1.0)), cut]) == {}


@pytest.fixture
def write(tmp_path):
    def write(turns, modes=("baseline", "a")):
        writer = RecordWriter.create(tmp_path, force=True)
        for name in modes:
            writer.mode(name, {"available": True, "applied": True, "proof": "seen", "keeps_numbers": True})
        for some in turns:
            turn_id = writer.begin_turn(some)
            for step in some.steps:
                writer.step(turn_id, step)
            writer.end_turn(turn_id, some.facts)
        writer.close()
        return derive(load(tmp_path))

    return write


def test_equal_digests_are_the_same_numbers(write):
    same = {"parameters_digest": "p", "buffers_digest": "b"}
    results = write(run(turn("baseline", 1.0, **same), turn("a", 1.0, **same)))
    assert results.mode("a").same_parameters is True


def test_one_differing_turn_is_enough_to_say_no(write):
    turns = [turn("baseline", 1.0, parameters_digest="p") for _ in range(2)]
    turns += [turn("a", 1.0, parameters_digest=digest, round_=n) for n, digest in enumerate("pq")]
    assert write(run(*turns)).mode("a").same_parameters is False


def test_a_baseline_that_does_not_repeat_itself_leaves_the_question_open(write):
    turns = [turn("baseline", 1.0, parameters_digest=digest) for digest in "pq"]
    results = write(run(*turns, turn("a", 1.0, parameters_digest="p")))
    assert results.mode("baseline").same_parameters is False
    assert results.mode("a").same_parameters is None


def test_anomaly_cost_is_split_within_each_round(write):
    turns = []
    for round_, speed in enumerate((1.0, 2.0, 1.5)):
        for mode, factor in (
            ("baseline", 1.0),
            ("anomaly", 1.27),
            ("anomaly-stacks", 1.06),
            ("baseline", 1.0),
        ):
            turns.append(turn(mode, speed * factor, round_=round_))
    results = write(run(*turns), ("baseline", "anomaly", "anomaly-stacks"))
    content = to_json(results, ())
    assert content["anomaly_cost"]["stacks_share"] == pytest.approx(0.06)
    assert content["anomaly_cost"]["checks_share"] == pytest.approx(0.21)
    assert content["modes"]["anomaly"]["slowdown"]["ratio"] == pytest.approx(1.27)


def test_results_json_has_no_value_that_json_lacks(write):
    results = write(run(turn("baseline", 1.0), turn("a", 2.0)))
    slowdown = to_json(results, ())["modes"]["a"]["slowdown"]
    # One round: an estimate and no interval.
    assert (slowdown["ratio"], slowdown["low"], slowdown["high"], slowdown["verdict"]) == (
        pytest.approx(2.0),
        None,
        None,
        "not resolved",
    )
    assert math.isfinite(slowdown["n"])
