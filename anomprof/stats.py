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
from typing import Any, Literal, NamedTuple

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

#: An interval counts as narrow when it reaches no further than this to either side of the estimate.
NARROW = 0.02

#: "slower" and "faster" are said only when the whole interval lies beyond this distance from 1:
#: smaller differences come out of an unchanged program on a shared machine, and interest nobody.
MARGIN = 0.01

#: Share (by weight) dropped at either end of the sorted ratios before averaging. A quarter makes
#: the estimate the interquartile mean: in simulations with occasional hiccups of the machine its
#: interval is three times narrower than the mean's, and without them 10 % wider.
_TRIMMED = 0.25

# Resampling 10,000 times 1,000 rounds would need 80 MB; blocks keep the memory small.
_BLOCK_VALUES = 2_000_000


class Round(NamedTuple):
    """What one round says.

    Attributes:
        value: A ratio or a difference.
        unsteadiness: How far the baseline before and the baseline after disagree, as the distance of
            their logarithms. The mode's own time plays no part in it, so it favours no result.
    """

    value: float
    unsteadiness: float = 0.0


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


def paired_ratio(rounds_by_process: Sequence[Sequence[Round]], resamples: int = RESAMPLES) -> Interval:
    """Returns the typical ratio with its interval.

    Args:
        rounds_by_process: For each process its rounds, with the ratio of the mode to the baseline
            around it. With several processes these are resampled too, since the layout of memory and
            threads differs between them (a few processes understate by how much).

    Returns:
        Interquartile mean of the log ratios, weighted by the steadiness of the machine
        (:func:`weigh`), and a bootstrap interval (percentile method) stretched
        about the estimate as in :func:`stretch`.

    Raises:
        ValueError: There is no ratio, or one is not positive.
    """
    log = _bootstrap([_logs(rounds) for rounds in rounds_by_process if rounds], resamples)
    return Interval(math.exp(log.estimate), math.exp(log.low), math.exp(log.high), log.n)


def ratio_estimate(rounds: Sequence[Round]) -> float:
    """Returns the estimate of :func:`paired_ratio` for one process, without the work of an interval."""
    logs = sorted(_logs(rounds))
    return math.exp(float(_middle(_values(logs), weigh([round_.unsteadiness for round_ in logs]))))


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


def paired_difference(rounds_by_process: Sequence[Sequence[Round]]) -> Interval:
    """Returns the same as :func:`paired_ratio` for values that are differences, without logarithms."""
    return _bootstrap([rounds for rounds in rounds_by_process if rounds], RESAMPLES)


def weigh(unsteadiness: Sequence[float]) -> Floats:
    """Returns the weight of each round: 1 / (s^2 + d^2) with its unsteadiness d, and s the median d.

    While the machine changes its speed, a ratio says more about the machine than about the mode. On the
    machine where this was chosen, ratios from the steadiest third of the moments varied by 4 %, those
    from the least steady by 10 %.
    """
    distance = np.asarray(unsteadiness, dtype=np.float64)
    scale = float(np.median(distance))
    if scale == 0:
        return np.ones_like(distance)
    return np.asarray(1 / (scale**2 + distance**2))


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


def stretch(n: float) -> float:
    """Returns the factor that makes a percentile interval of ``n`` (effective) values honest.

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


def _logs(rounds: Sequence[Round]) -> list[Round]:
    if not all(0 < round_.value < math.inf for round_ in rounds):
        raise ValueError("ratios must be positive and finite")
    return [Round(math.log(round_.value), round_.unsteadiness) for round_ in rounds]


def _values(rounds: Sequence[Round]) -> Floats:
    return np.asarray([round_.value for round_ in rounds], dtype=np.float64)


def _bootstrap(processes: Sequence[Sequence[Round]], resamples: int) -> Interval:
    """Resamples processes, then rounds within each."""
    every = [round_ for rounds in processes for round_ in rounds]
    if not every:
        raise ValueError("no round has all that is compared")
    values, weights = _values(every), weigh([round_.unsteadiness for round_ in every])
    n = len(every)
    # Sorted once, so that a resample is sorted by sorting small whole numbers, which is quick.
    order = np.argsort(values)
    values, weights, rank = values[order], weights[order], np.argsort(order)
    estimate = float(_middle(values, weights))
    if n < 2:
        return Interval(estimate, math.nan, math.nan, n)
    # A fixed seed: the same record gives the same report.
    generator = np.random.default_rng(0)
    parts = []
    left = resamples
    while left:
        size = min(left, max(1, _BLOCK_VALUES // n))
        chosen = _resample([len(rounds) for rounds in processes], size, generator)
        ranks = np.sort(rank[chosen].astype(np.uint16 if n <= 65_536 else np.int64), axis=-1, kind="stable")
        parts.append(_middle(values[ranks], weights[ranks]))
        left -= size
    tail = (1 - LEVEL) / 2 * 100
    low, high = np.percentile(np.concatenate(parts), [tail, 100 - tail])
    # Kish's effective sample size: rounds with little weight add little.
    factor = stretch(max(1.5, float(weights.sum() ** 2 / (weights**2).sum())))
    low = estimate + factor * min(0.0, float(low) - estimate)
    high = estimate + factor * max(0.0, float(high) - estimate)
    return Interval(estimate, low, high, n)


def _resample(lengths: Sequence[int], size: int, generator: np.random.Generator) -> npt.NDArray[np.intp]:
    """Returns ``size`` rows of indices into the rounds of all processes, one process after the other."""
    if len(lengths) == 1:
        return generator.integers(0, lengths[0], (size, lengths[0]))
    # Each chosen process contributes as many rounds as the shortest has: rather too wide than too narrow.
    counts = np.asarray(lengths)
    first = np.cumsum(counts) - counts
    processes = generator.integers(0, len(lengths), (size, len(lengths), 1))
    within = (generator.random((size, len(lengths), min(lengths))) * counts[processes]).astype(np.intp)
    return np.asarray((first[processes] + within).reshape(size, -1), dtype=np.intp)


def _middle(values: Floats, weights: Floats) -> Floats:
    """Weighted interquartile mean along the last axis, along which the values are sorted.

    The quarter of the weight at either end is cut off.
    """
    upper = np.cumsum(weights, axis=-1)
    total = upper[..., -1:]
    lower = upper - weights
    kept = np.minimum(upper, (1 - _TRIMMED) * total) - np.maximum(lower, _TRIMMED * total)
    kept = np.maximum(kept, 0.0)
    return np.asarray((kept * values).sum(axis=-1) / kept.sum(axis=-1))
