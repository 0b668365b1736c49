import pytest

from anomprof.harness.plan import Plan
from anomprof.harness.processes import shares


def test_modes_that_can_share_a_process_do():
    (share,) = shares(Plan("mlp", ("baseline", "anomaly", "clip-norm"), budget_seconds=90))
    assert share.modes == ("baseline", "anomaly", "clip-norm")
    assert share.budget_seconds == 90
    assert not share.own


def test_compile_gets_a_process_with_a_baseline_of_its_own():
    together, apart = shares(Plan("mlp", ("baseline", "anomaly", "compile"), budget_seconds=80))
    # Four turns a round in all: baseline, anomaly, and once more baseline, compile.
    assert (together.modes, together.budget_seconds) == (("baseline", "anomaly"), 40)
    assert (apart.modes, apart.budget_seconds, apart.own) == (("baseline", "compile"), 40, True)


def test_compile_alone_starts_no_process_for_the_baseline_alone():
    (share,) = shares(Plan("mlp", ("baseline", "compile"), budget_seconds=80))
    assert share.modes == ("baseline", "compile")
    assert share.own


def test_processes_divide_the_budget_and_the_first_describes_the_modes():
    first, second = shares(Plan("mlp", ("baseline", "anomaly"), budget_seconds=80, processes=2))
    assert first.modes == second.modes
    assert first.budget_seconds == second.budget_seconds == 40
    assert (first.described, second.described) == (("baseline", "anomaly"), ())


def test_a_plan_survives_the_way_through_the_record():
    plan = Plan("mlp", ("baseline", "anomaly"), budget_seconds=1.5, data="folder")
    assert Plan.from_json(plan.to_json()) == plan
    with pytest.raises(ValueError, match="colour"):
        Plan.from_json({**plan.to_json(), "colour": "red"})
