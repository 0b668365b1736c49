"""Paired ratios, their 95 % bootstrap intervals, and verdicts in three values.

The question is always "how much longer does a step take in this mode than in the baseline?". Each
turn of a mode has turns of the baseline just before and after it, so their ratio is free of the slow
drifts of a shared machine. Here rounds become an estimate, an interval and a verdict.

Everything happens on logarithms: a ratio of 2 and one of 1/2 are equally far from 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Verdict = Literal["slower", "faster", "no difference", "not resolved"]
Floats = npt.NDArray[np.float64]

_normal_quantile = NormalDist().inv_cdf

LEVEL = 0.95
RESAMPLES = 10_000

#: While measuring goes on: enough to decide what needs more rounds, and five times as quick.
LIVE_RESAMPLES = 2_000

#: Intervals of fewer rounds than this are rough; by chance some of them look narrow.
ROUNDS_TO_TRUST = 6

#: An interval counts as narrow when it reaches no further than this to either side of the estimate.
NARROW = 0.02

#: "slower" and "faster" are said only when the whole interval lies beyond this distance from 1:
#: smaller differences come out of an unchanged program on a shared machine, and interest nobody.
MARGIN = 0.01

#: Share of the rounds dropped at either end of the sorted ratios before averaging. A quarter makes
#: the estimate the interquartile mean: in simulations with occasional hiccups of the machine its
#: interval is three times narrower than the mean's, and without them 10 % wider.
_TRIMMED = 0.25

# Resampling 10,000 times 1,000 rounds would need 80 MB; blocks keep the memory small.
_BLOCK_VALUES = 2_000_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval.

    Attributes:
        n: Number of rounds (or steps) behind it. With n = 1 there is no interval:
            ``low`` and ``high`` are ``nan``.
    """

    estimate: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Distance to the farther end as a fraction of the estimate; infinite where n is 1."""
        if self.n < 2:
            return math.inf
        return max(self.high / self.estimate - 1, 1 - self.low / self.estimate)

    @property
    def is_narrow(self) -> bool:
        """Whether more rounds would not make it much better."""
        return self.half_width <= NARROW


def paired_ratio(ratios_by_process: Sequence[Sequence[float]], resamples: int = RESAMPLES) -> Interval:
    """Returns the typical ratio with its interval.

    Args:
        ratios_by_process: For each process the ratios of the mode to the baseline around it, one a
            round. With several processes these are resampled too, since the layout of memory and
            threads differs between them (a few processes understate by how much).
        resamples: Of the bootstrap.

    Returns:
        Interquartile mean of the log ratios, and a bootstrap interval (percentile method) stretched
        about the estimate as in :func:`stretch`.

    Raises:
        ValueError: There is no ratio, or one is not positive.
    """
    logs = [_logs(ratios) for ratios in ratios_by_process if ratios]
    if not logs:
        raise ValueError("no round has both the mode and the baseline")
    log_interval = _bootstrap(logs, resamples)
    return Interval(
        math.exp(log_interval.estimate),
        math.exp(log_interval.low),
        math.exp(log_interval.high),
        log_interval.n,
    )


def ratio_estimate(ratios: Sequence[float]) -> float:
    """Returns the estimate of :func:`paired_ratio` for one process, without the work of an interval."""
    return math.exp(float(_middle(_logs(ratios))))


def median_interval(values: Sequence[float]) -> Interval:
    """Returns the median with a distribution-free 95 % interval from order statistics.

    The ends are the observed values whose ranks a binomial(n, 1/2) count exceeds with at most
    2.5 % probability each (normal approximation; the extremes where n is below 6).
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    n = len(ordered)
    reach = _normal_quantile(0.5 + LEVEL / 2) * math.sqrt(n) / 2
    low = max(0, math.floor(n / 2 - reach))
    high = min(n - 1, math.ceil(n / 2 + reach) - 1)
    middle = float(np.median(ordered))
    if n < 2:
        return Interval(middle, math.nan, math.nan, n)
    return Interval(middle, ordered[low], ordered[high], n)


def paired_difference(values_by_process: Sequence[Sequence[float]]) -> Interval:
    """Returns the interquartile mean of per-round values (such as a difference of two ratios)."""
    values = [np.asarray(values, dtype=np.float64) for values in values_by_process if len(values)]
    if not values:
        raise ValueError("no round has all that is compared")
    return _bootstrap(values, RESAMPLES)


def verdict(ratio: Interval) -> Verdict:
    """Judges a ratio to the baseline; says "not resolved" rather than ranking noise."""
    if ratio.n < 2:
        return "not resolved"
    if ratio.low > 1 + MARGIN:
        return "slower"
    if ratio.high < 1 - MARGIN:
        return "faster"
    if ratio.low > 1 - NARROW and ratio.high < 1 + NARROW:
        return "no difference"
    return "not resolved"


def stretch(n: int) -> float:
    """Returns the factor that makes a percentile interval of ``n`` values honest.

    Resampling n values understates their spread by sqrt((n - 1) / n), and a normal quantile stands
    in for Student's t. For normal values the stretched interval of a mean is the t interval.
    Source: Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 4 (there as
    widened percentiles, which cannot reach far enough where n is below 6).
    """
    tail = 0.5 + LEVEL / 2
    return float(stdtrit(n - 1, tail)) / _normal_quantile(tail) * math.sqrt(n / (n - 1))


def as_json(interval: Interval) -> Mapping[str, Any]:
    """Returns ``low``, ``high`` and ``n``, with None for the ends that do not exist."""
    low = None if math.isnan(interval.low) else interval.low
    high = None if math.isnan(interval.high) else interval.high
    return {"low": low, "high": high, "n": interval.n}


def _logs(ratios: Sequence[float]) -> Floats:
    values = np.asarray(ratios, dtype=np.float64)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError("ratios must be positive and finite")
    return np.log(values)


def _bootstrap(groups: Sequence[Floats], resamples: int) -> Interval:
    """Resamples groups (processes), then values (rounds) within each."""
    n = sum(len(group) for group in groups)
    estimate = float(_middle(np.concatenate(groups)))
    if n < 2:
        return Interval(estimate, math.nan, math.nan, n)
    # A fixed seed: the same record gives the same report.
    generator = np.random.default_rng(0)
    parts = []
    left = resamples
    while left:
        size = min(left, max(1, _BLOCK_VALUES // n))
        parts.append(_middle_of_resamples(groups, size, generator))
        left -= size
    tail = (1 - LEVEL) / 2 * 100
    low, high = np.percentile(np.concatenate(parts), [tail, 100 - tail])
    factor = stretch(n)
    low = estimate + factor * min(0.0, float(low) - estimate)
    high = estimate + factor * max(0.0, float(high) - estimate)
    return Interval(estimate, low, high, n)


def _middle_of_resamples(groups: Sequence[Floats], size: int, generator: np.random.Generator) -> Floats:
    # Each chosen process contributes as many rounds as the shortest has: rather too wide than too narrow.
    drawn = min(len(group) for group in groups)
    padded = np.zeros((len(groups), max(len(group) for group in groups)))
    for row, group in zip(padded, groups, strict=True):
        row[: len(group)] = group
    lengths = np.array([len(group) for group in groups])
    chosen = generator.integers(0, len(groups), (size, len(groups), 1))
    rounds = (generator.random((size, len(groups), drawn)) * lengths[chosen]).astype(np.intp)
    return _middle(padded[chosen, rounds].reshape(size, -1))


def _middle(values: Floats) -> Floats:
    """Interquartile mean along the last axis (the plain mean below 4 values)."""
    n = values.shape[-1]
    dropped = int(_TRIMMED * n)
    ordered = np.sort(values, axis=-1)
    return np.asarray(ordered[..., dropped : n - dropped].mean(axis=-1))
