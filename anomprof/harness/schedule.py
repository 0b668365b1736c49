"""Which modes take part in the next round, in which order, and when to stop. No torch.

In a round every mode that takes part has one turn, in shuffled order, and the baseline has one before
the first, after every second and after the last::

    baseline  clip-norm  anomaly  baseline  profiler  checkpoint  baseline  amp-bf16  baseline

So no mode is further than two turns from a baseline on either side. A shared machine changes its speed
within seconds: on the machine where this was chosen, the times of neighbouring turns correlated with
0.6, and those ten turns apart with 0.

The budget goes where it is needed: a mode whose interval is narrow sits out, and so does one whose
verdict is beyond doubt as long as others still need rounds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anomprof.results import BASELINE
from anomprof.stats import NARROW, ROUNDS_TO_TRUST, Interval

#: Turns of other modes between two baselines. One would be paired a little better and cost more turns.
MODES_BETWEEN_BASELINES = 2

#: Every mode gets this many turns, even where the budget is spent: below two there is no interval.
FEWEST_ROUNDS = 2

#: A mode whose whole interval lies above this ratio (or below its inverse) is decided.
BEYOND_DOUBT = 2.0


@dataclass(frozen=True)
class Decision:
    """The next round, or why there is none.

    Attributes:
        modes: Shuffled; empty where measuring ends.
        stop_reason: Why measuring ends; empty while it goes on.
    """

    modes: tuple[str, ...]
    stop_reason: str = ""


class Schedule:
    """Decides round by round.

    Args:
        modes: All modes that can run; the baseline takes part in every round.
        budget_seconds: For :attr:`Decision.stop_reason`.
        seed: Of the shuffling.
    """

    def __init__(self, modes: Sequence[str], budget_seconds: float, seed: int) -> None:
        self._modes = [mode for mode in modes if mode != BASELINE]
        self._budget_seconds = budget_seconds
        self._random = random.Random(seed)
        self._turns: Counter[str] = Counter()
        self._rounds = 0
        self._last_turn = ""
        self._turn_seconds: dict[str, float] = {}

    def drop(self, mode: str) -> None:
        """Takes a mode out for good (it failed)."""
        self._modes = [other for other in self._modes if other != mode]

    def took_turn(self, mode: str, seconds: float) -> None:
        """Notes a turn with everything around it: restoring, settling, digests."""
        self._turns[mode] += 1
        self._last_turn = mode
        self._turn_seconds[mode] = seconds

    def next_round(self, slowdowns: Mapping[str, Interval], seconds_left: float) -> Decision:
        """Returns who runs next.

        Args:
            slowdowns: The current estimates.
            seconds_left: Of the budget; may be negative.
        """
        if not self._modes:
            return self._baseline_alone(seconds_left)
        due = [mode for mode in self._modes if self._turns[mode] < FEWEST_ROUNDS]
        if due:
            return self._round(due if seconds_left <= 0 else self._wanting(slowdowns) or due)
        wanting = self._wanting(slowdowns)
        if not wanting:
            return Decision((), f"every interval is narrower than ±{NARROW:.0%}")
        fitting = self._fitting(wanting, slowdowns, seconds_left)
        if not fitting:
            return Decision((), f"the budget of {self._budget_seconds:g} s was spent")
        return self._round(fitting)

    def _baseline_alone(self, seconds_left: float) -> Decision:
        taken = self._turns[BASELINE]
        if taken < FEWEST_ROUNDS or (taken < ROUNDS_TO_TRUST and seconds_left > 0):
            self._rounds += 1
            return Decision((BASELINE,))
        return Decision((), "there was nothing to compare the baseline with")

    def sits_out(self, mode: str, slowdowns: Mapping[str, Interval]) -> str | None:
        """Returns why a mode was left out of later rounds, or None where it was not (but by the budget)."""
        turns = self._turns[mode]
        if mode == BASELINE or turns >= self._rounds or mode not in slowdowns:
            return None
        if slowdowns[mode].is_narrow:
            return f"its interval was narrow after {turns} rounds"
        if _is_beyond_doubt(slowdowns[mode]):
            return f"its verdict was beyond doubt after {turns} rounds"
        return None

    def seconds_for(self, modes: Sequence[str]) -> float:
        """Returns how long a round of these modes and the baseline would take."""
        typical = max(self._turn_seconds.values(), default=0.0)
        return sum(self._turn_seconds.get(mode, typical) for mode in self._in_order(modes))

    def _wanting(self, slowdowns: Mapping[str, Interval]) -> list[str]:
        """Modes that still need rounds: first those in doubt, and when there are none the decided."""
        wide = [mode for mode in self._modes if not self._is_settled(mode, slowdowns)]
        doubtful = [mode for mode in wide if mode not in slowdowns or not _is_beyond_doubt(slowdowns[mode])]
        return doubtful or wide

    def _is_settled(self, mode: str, slowdowns: Mapping[str, Interval]) -> bool:
        return self._turns[mode] >= ROUNDS_TO_TRUST and mode in slowdowns and slowdowns[mode].is_narrow

    def _fitting(
        self, wanting: Sequence[str], slowdowns: Mapping[str, Interval], seconds_left: float
    ) -> list[str]:
        """As many as fit into the time left, those with the widest intervals first."""
        chosen: list[str] = []
        for mode in sorted(wanting, key=lambda mode: -slowdowns[mode].half_width):
            if self.seconds_for([*chosen, mode]) <= seconds_left:
                chosen.append(mode)
        return chosen

    def _round(self, modes: Sequence[str]) -> Decision:
        order = list(modes)
        self._random.shuffle(order)
        self._rounds += 1
        return Decision(tuple(self._in_order(order)))

    def _in_order(self, modes: Sequence[str]) -> list[str]:
        """Puts the baselines between; the first is spared where the last turn was one."""
        order = [] if self._last_turn == BASELINE else [BASELINE]
        for number in range(0, len(modes), MODES_BETWEEN_BASELINES):
            order += [*modes[number : number + MODES_BETWEEN_BASELINES], BASELINE]
        return order


def _is_beyond_doubt(ratio: Interval) -> bool:
    return ratio.n >= FEWEST_ROUNDS and (ratio.low > BEYOND_DOUBT or ratio.high < 1 / BEYOND_DOUBT)
