from __future__ import annotations

import math

import pytest

from anomprof.report import units
from anomprof.stats import Interval


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(1.2734, 1.2388, 1.3079, 12), "1.27 (1.24-1.31)"),  # half-width 0.035
        (Interval(1.2734, 1.2634, 1.2834, 12), "1.273 (1.263-1.283)"),  # 0.01: one more digit
        (Interval(11.213, 10.71, 11.74, 2), "11.2 (10.7-11.7)"),
        (Interval(48.2, 30.1, 71.9, 3), "48 (30-72)"),
        (Interval(3.3, 1.1, 9.9, 3), "3.3 (1.1-9.9)"),
        (Interval(1.000004, 1.000003, 1.000005, 12), "1.000 (1.000-1.000)"),
        (Interval(1.31, math.nan, math.nan, 1), "1.3 (1 round, no interval)"),
    ],
)
def test_a_ratio_has_the_digits_that_its_interval_supports(interval: Interval, expected: str) -> None:
    assert units.ratio(interval) == expected


def test_a_negative_end_is_not_joined_by_a_hyphen() -> None:
    assert units.share(Interval(0.01, -0.02, 0.04, 9)) == "0.01 (-0.02 to 0.04)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.492, "492 ms"), (5.512, "5.51 s"), (3.2e-5, "32.0 us"), (0.0, "0"), (0.9999, "1,000 ms")],
)
def test_seconds_choose_their_unit(value: float, expected: str) -> None:
    assert units.seconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(9.999, "10.0"), (99.95, "100"), (0.01234, "0.0123"), (12345.6, "12,346"), (-1.5, "-1.50")],
)
def test_three_digits_are_kept(value: float, expected: str) -> None:
    assert units.three_digits(value) == expected


def test_an_interval_that_says_nothing_is_not_spelled_out() -> None:
    wide = Interval(0.3, 0.0001, 80655.0, 2)
    assert units.ratio(wide) == "0.30 (2 rounds, too few)"
    assert units.ratio_range(wide) == "2 rounds, too few"
