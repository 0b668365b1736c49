"""Pairs every turn of a mode with the baseline around it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anomprof.record import Turn
from anomprof.stats import LIVE_RESAMPLES, RESAMPLES, Interval, paired_ratio

BASELINE = "baseline"


@dataclass(frozen=True)
class Pair:
    """A mode's turn and the baseline around it.

    Attributes:
        seconds: Of the mode's typical step.
        baseline_seconds: Geometric mean of the baseline's turns just before and just after (of the
            one that there is, where a run was cut off).
    """

    round: int
    seconds: float
    baseline_seconds: float

    @property
    def ratio(self) -> float:
        """How many times longer the mode's step is."""
        return self.seconds / self.baseline_seconds


Pairs = Mapping[str, Mapping[int, Sequence[Pair]]]


def pair_up(turns: Sequence[Turn]) -> Pairs:
    """Returns mode -> process -> one pair for each of the mode's turns."""
    pairs: dict[str, dict[int, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    by_process: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        if is_complete(turn):
            by_process[turn.process].append(turn)
    for process, run in by_process.items():
        run.sort(key=lambda turn: turn.started)
        before = _nearest_baselines(run)
        after = _nearest_baselines(run[::-1])[::-1]
        for turn, around in zip(run, zip(before, after, strict=True), strict=True):
            known = [seconds for seconds in around if seconds is not None]
            if turn.mode != BASELINE and known:
                pair = Pair(turn.round, turn_seconds(turn), statistics.geometric_mean(known))
                pairs[turn.mode][process].append(pair)
    return pairs


def _nearest_baselines(turns: Sequence[Turn]) -> list[float | None]:
    """Returns for each turn the step time of the baseline's last turn before it."""
    nearest: list[float | None] = []
    last = None
    for turn in turns:
        nearest.append(last)
        if turn.mode == BASELINE:
            last = turn_seconds(turn)
    return nearest


def live_slowdowns(turns: Sequence[Turn]) -> dict[str, Interval]:
    """Returns each mode's ratio to the baseline as known so far, while measuring goes on."""
    return {mode: slowdown(by_process, LIVE_RESAMPLES) for mode, by_process in pair_up(turns).items()}


def slowdown(by_process: Mapping[int, Sequence[Pair]], resamples: int = RESAMPLES) -> Interval:
    """Returns a mode's ratio to the baseline over all its pairs."""
    return paired_ratio([[pair.ratio for pair in pairs] for pairs in by_process.values()], resamples)


def turn_seconds(turn: Turn) -> float:
    """Returns the time of a turn's typical step: the median of its timed steps."""
    return statistics.median(step.step_seconds for step in turn.steps)


def is_complete(turn: Turn) -> bool:
    """Whether the turn took all its steps (the last turn of a killed run did not)."""
    return bool(turn.steps) and "final_loss" in turn.facts
