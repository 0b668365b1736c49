import itertools

from anomprof.harness.schedule import FEWEST_ROUNDS, Schedule
from anomprof.stats import ROUNDS_TO_TRUST, Interval

NARROW = Interval(1.1, 1.095, 1.105, 10)
WIDE = Interval(1.1, 1.0, 1.2, 10)
DECIDED = Interval(11.0, 8.0, 15.0, 2)


def taking_part(decision):
    return sorted(set(decision.modes) - {"baseline"})


def played(turns: dict[str, int], seconds: float = 1.0, budget: float = 100) -> Schedule:
    schedule = Schedule([*turns], budget, seed=0)
    for mode, count in turns.items():
        for _ in range(count):
            schedule.took_turn(mode, seconds)
    return schedule


def test_every_mode_takes_part_in_the_first_round():
    decision = played({"baseline": 0, "a": 0, "b": 0}).next_round({}, 100)
    assert taking_part(decision) == ["a", "b"]


def test_the_order_is_shuffled_anew_each_round():
    schedule = played({"baseline": 0, **dict.fromkeys("abcdefg", 0)})
    orders = {schedule.next_round({}, 100).modes for _ in range(5)}
    assert len(orders) == 5


def test_the_same_seed_gives_the_same_orders():
    one, two = (played({"baseline": 0, "a": 0, "b": 0, "c": 0}) for _ in range(2))
    assert [one.next_round({}, 100) for _ in range(4)] == [two.next_round({}, 100) for _ in range(4)]


def test_a_narrow_mode_sits_out_and_says_so():
    schedule = played({"baseline": 10, "a": 10, "b": 10})
    decision = schedule.next_round({"a": NARROW, "b": WIDE}, 100)
    assert taking_part(decision) == ["b"]


def test_a_mode_that_was_left_out_says_why():
    schedule = Schedule(["baseline", "a", "slow", "b"], 100, seed=0)
    for _ in range(3):
        schedule.next_round({"a": WIDE, "slow": DECIDED, "b": WIDE}, 100)
        schedule.took_turn("b", 1.0)
    for mode in ("a", "slow"):
        for _ in range(2):
            schedule.took_turn(mode, 1.0)
    known = {"a": NARROW, "slow": DECIDED, "b": WIDE}
    assert schedule.sits_out("a", known) == "its interval was narrow after 2 rounds"
    assert schedule.sits_out("slow", known) == "its verdict was beyond doubt after 2 rounds"
    assert schedule.sits_out("b", known) is None
    assert schedule.sits_out("baseline", known) is None


def test_no_mode_is_further_than_two_turns_from_a_baseline_on_either_side():
    schedule = Schedule(["baseline", *"abcdefg"], 100, seed=0)
    run = []
    for _ in range(4):
        decision = schedule.next_round(dict.fromkeys("abcdefg", WIDE), 100)
        for mode in decision.modes:
            schedule.took_turn(mode, 1.0)
        run += decision.modes
    assert run[0] == run[-1] == "baseline"
    for place, mode in enumerate(run):
        if mode != "baseline":
            assert "baseline" in run[max(0, place - 2) : place]
            assert "baseline" in run[place + 1 : place + 3]
    assert not any(pair == ("baseline", "baseline") for pair in itertools.pairwise(run))


def test_few_rounds_are_not_believed_to_be_narrow():
    few = ROUNDS_TO_TRUST - 1
    decision = played({"baseline": few, "a": few}).next_round({"a": NARROW}, 100)
    assert "a" in decision.modes


def test_a_decided_mode_waits_while_others_are_in_doubt():
    schedule = played({"baseline": 2, "a": 2, "slow": 2})
    decision = schedule.next_round({"a": WIDE, "slow": DECIDED}, 100)
    assert taking_part(decision) == ["a"]


def test_a_decided_mode_returns_when_nobody_else_needs_rounds():
    schedule = played({"baseline": 9, "a": 9, "slow": 2})
    decision = schedule.next_round({"a": NARROW, "slow": DECIDED}, 100)
    assert taking_part(decision) == ["slow"]


def test_measuring_ends_when_all_are_narrow():
    decision = played({"baseline": 9, "a": 9}).next_round({"a": NARROW}, 100)
    assert decision.modes == ()
    assert "narrower" in decision.stop_reason


def test_measuring_ends_when_no_round_fits_into_the_budget():
    decision = played({"baseline": 9, "a": 9}, seconds=3).next_round({"a": WIDE}, 5)
    assert decision.modes == ()
    assert decision.stop_reason == "the budget of 100 s was spent"


def test_the_widest_interval_gets_the_last_seconds():
    wider = Interval(1.1, 0.8, 1.5, 10)
    decision = played({"baseline": 9, "a": 9, "b": 9}, seconds=2).next_round(
        {"a": WIDE, "b": wider}, 7
    )  # b and two baselines take 6 s
    assert taking_part(decision) == ["b"]


def test_two_rounds_are_run_even_where_the_budget_is_spent():
    schedule = played({"baseline": 1, "a": 1, "b": FEWEST_ROUNDS})
    decision = schedule.next_round({"a": Interval(1, float("nan"), float("nan"), 1), "b": WIDE}, -5)
    assert taking_part(decision) == ["a"]


def test_a_dropped_mode_never_returns():
    schedule = played({"baseline": 1, "a": 1, "b": 1})
    schedule.drop("a")
    assert taking_part(schedule.next_round({}, 100)) == ["b"]


def test_the_baseline_alone_is_measured_a_few_times_and_then_ends():
    assert played({"baseline": 0}).next_round({}, 100).modes == ("baseline",)
    assert played({"baseline": ROUNDS_TO_TRUST}).next_round({}, 100).modes == ()
