"""Which modes take part in the next round, and when to stop. No torch.

The budget goes where it is needed: a mode whose interval is narrow sits out, and so does one whose
verdict is beyond doubt as long as others still need rounds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anomprof.results import BASELINE
from anomprof.stats import NARROW, Interval

#: Every mode gets this many turns, even where the budget is spent: below two there is no interval.
FEWEST_ROUNDS = 2

#: An interval of fewer rounds than this is not believed to be narrow: by chance some are.
ROUNDS_BEFORE_NARROW = 6

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
        self._turn_seconds: dict[str, float] = {}

    def drop(self, mode: str) -> None:
        """Takes a mode out for good (it failed)."""
        self._modes = [other for other in self._modes if other != mode]

    def took_turn(self, mode: str, seconds: float) -> None:
        """Notes a turn with everything around it: restoring, settling, digests."""
        self._turns[mode] += 1
        self._turn_seconds[mode] = seconds

    def next_round(self, slowdowns: Mapping[str, Interval], seconds_left: float) -> Decision:
        """Returns who runs next.

        Args:
            slowdowns: The current estimates.
            seconds_left: Of the budget; may be negative.
        """
        if not self._modes and self._turns[BASELINE] < ROUNDS_BEFORE_NARROW and seconds_left > 0:
            return Decision((BASELINE,))
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

    def sits_out(self, mode: str, slowdowns: Mapping[str, Interval]) -> str | None:
        """Returns why a mode has fewer rounds than the baseline, or None where it has as many."""
        if mode == BASELINE or self._turns[mode] >= self._turns[BASELINE] or mode not in slowdowns:
            return None
        turns = self._turns[mode]
        if slowdowns[mode].is_narrow:
            return f"sat out after {turns} rounds: its interval is narrow"
        if _is_beyond_doubt(slowdowns[mode]):
            return f"sat out after {turns} rounds: its verdict is beyond doubt"
        return f"sat out after {turns} rounds: no further turn fitted into the budget"

    def seconds_for(self, modes: Sequence[str]) -> float:
        """Returns how long a round of these modes and the baseline would take."""
        typical = max(self._turn_seconds.values(), default=0.0)
        return sum(self._turn_seconds.get(mode, typical) for mode in {BASELINE, *modes})

    def _wanting(self, slowdowns: Mapping[str, Interval]) -> list[str]:
        """Modes that still need rounds: first those in doubt, and when there are none the decided."""
        wide = [mode for mode in self._modes if not self._is_settled(mode, slowdowns)]
        doubtful = [mode for mode in wide if mode not in slowdowns or not _is_beyond_doubt(slowdowns[mode])]
        return doubtful or wide

    def _is_settled(self, mode: str, slowdowns: Mapping[str, Interval]) -> bool:
        return self._turns[mode] >= ROUNDS_BEFORE_NARROW and mode in slowdowns and slowdowns[mode].is_narrow

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
        order = [BASELINE, *modes]
        self._random.shuffle(order)
        return Decision(tuple(order))


def _is_beyond_doubt(ratio: Interval) -> bool:
    return ratio.n >= FEWEST_ROUNDS and (ratio.low > BEYOND_DOUBT or ratio.high < 1 / BEYOND_DOUBT)
