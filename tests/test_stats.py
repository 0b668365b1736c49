import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anomprof.stats import (
    Interval,
    median_interval,
    paired_difference,
    paired_ratio,
    stretch,
    verdict,
)

ratios = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)


def test_the_estimate_is_the_interquartile_mean_of_the_log_ratios():
    # A quarter of five values is one (rounded down) at either end: 1 and 1000 go, and the geometric
    # mean of 2, 4, 8 is (2 * 4 * 8) ** (1/3) = 4.
    ratio = paired_ratio([[1, 2, 4, 8, 1000]])
    assert ratio.estimate == pytest.approx(4)
    assert ratio.n == 5


def test_one_round_gives_an_estimate_without_an_interval_and_no_verdict():
    ratio = paired_ratio([[3.0]])
    assert ratio.estimate == pytest.approx(3)
    assert math.isnan(ratio.low)
    assert ratio.half_width == math.inf
    assert verdict(ratio) == "not resolved"


def test_two_rounds_stretch_like_students_t():
    # Log ratios -d and +d: all resamples average -d, 0 or d, and 2.5 % percentiles are -d and d.
    # t(1 degree, 97.5 %) = 12.706, normal 1.960, sqrt(2 / 1) = 1.4142: factor 9.168.
    d = 0.01
    ratio = paired_ratio([[math.exp(-d), math.exp(d)]])
    assert stretch(2) == pytest.approx(9.168, abs=0.001)
    assert math.log(ratio.high) == pytest.approx(9.168 * d, rel=1e-3)


def test_the_same_data_give_the_same_interval_every_time():
    data = [[random.Random(i).uniform(1, 2) for i in range(9)]]
    assert paired_ratio(data) == paired_ratio(data)


@given(ratios)
@settings(max_examples=50, deadline=None)
def test_the_interval_holds_the_estimate(data):
    ratio = paired_ratio([data])
    if ratio.n >= 2:
        assert ratio.low <= ratio.estimate * (1 + 1e-9)
        assert ratio.high >= ratio.estimate * (1 - 1e-9)


@given(ratios)
@settings(max_examples=30, deadline=None)
def test_swapping_mode_and_baseline_inverts_the_estimate(data):
    swapped = [1 / ratio for ratio in data]
    product = paired_ratio([data]).estimate * paired_ratio([swapped]).estimate
    assert product == pytest.approx(1)


def test_intervals_cover_the_truth_in_about_95_of_100_runs():
    # Truth 1.1, noise of 3 % with a hiccup of +30 % in one step of ten, 8 rounds.
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        noise = generator.normal(0, 0.03, (2, 8)) + 0.3 * (generator.random((2, 8)) < 0.1)
        times = np.exp(noise)
        ratio = paired_ratio([list(1.1 * times[0] / times[1])])
        covered += ratio.low <= 1.1 <= ratio.high
    # 95 % of 300 is 285; three standard deviations of a binomial are 11.
    assert covered >= 274


def test_processes_that_disagree_widen_the_interval():
    agreeing = [[1.2] * 6, [1.2] * 6]
    disagreeing = [[1.1] * 6, [1.3] * 6]
    assert paired_ratio(agreeing).half_width < 1e-9
    ratio = paired_ratio(disagreeing)
    assert ratio.low <= 1.1 + 1e-9
    assert ratio.high >= 1.3 - 1e-9


@pytest.mark.parametrize("broken", [[[]], [[0.0]], [[math.nan]], [[-1.0]]])
def test_ratios_that_cannot_be_are_refused(broken):
    with pytest.raises(ValueError, match="no round|positive"):
        paired_ratio(broken)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.011, 1.3, "slower"),
        (1.009, 1.3, "not resolved"),  # within the margin: an unchanged program does that
        (0.5, 0.989, "faster"),
        (0.5, 0.995, "not resolved"),
        (0.99, 1.015, "no difference"),
        (1.005, 1.018, "no difference"),
        (0.97, 1.01, "not resolved"),
    ],
)
def test_verdicts_need_the_whole_interval_beyond_the_margin(low, high, expected):
    assert verdict(Interval((low + high) / 2, low, high, 10)) == expected


def test_the_median_interval_is_made_of_observed_values():
    # n = 20: 20/2 -+ 1.96 * sqrt(20)/2 = 5.62 .. 14.38, so the sorted values at 0-based 5 and 14.
    interval = median_interval([float(value) for value in range(20)])
    assert (interval.estimate, interval.low, interval.high) == (9.5, 5.0, 14.0)


def test_a_difference_is_averaged_over_the_rounds():
    assert paired_difference([[0.2, 0.2, 0.2]]).estimate == pytest.approx(0.2)
    with pytest.raises(ValueError, match="no round"):
        paired_difference([[]])
