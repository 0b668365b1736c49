"""Scaled losses: gradients that overflow under a GradScaler are part of its search, until it does not end."""

from __future__ import annotations

from anomprof.tracing.events import Event
from anomprof.tracing.symptom import Symptom

_SMALLEST_SCALE = 1.0  # a scale below this makes gradients smaller than they are: the search has failed
_LONGEST_SEARCH = 24  # skipped steps in a row: from 2**16 a search is over after 16 halvings
_PATIENCE = 5  # skipped steps in a row where the overflow has nothing to do with the scale
_AT_THE_END = 2

Held = tuple[Event, Symptom]


class LossScaling:
    """What a GradScaler does, and the bad gradients that wait for its verdict.

    Attributes:
        is_scaled: Whether the next backward runs on a scaled loss.
    """

    def __init__(self) -> None:
        self.is_scaled = False
        self._held: list[Held] = []
        self._streak: list[Held] = []
        self._skips = 0

    def hold(self, event: Event, symptom: Symptom) -> None:
        """Keeps a bad gradient until the scaler has decided."""
        self._held.append((event, symptom))

    def let_through(self) -> list[Held]:
        """The optimizer stepped: returns the bad gradients that it used."""
        held, self._held, self._streak, self._skips = self._held, [], [], 0
        self.is_scaled = False
        return held

    def skip(self, scale: float) -> list[Held]:
        """The scaler skipped the step: returns what has become harm, since the search does not end."""
        self._streak.extend(self._held[: 8 - len(self._streak)])
        self._held = []
        self._skips += 1
        self.is_scaled = False
        if (
            scale < _SMALLEST_SCALE
            or self._skips >= _LONGEST_SEARCH
            or (self._skips >= _PATIENCE and self._is_independent())
        ):
            return self._taken()
        return []

    def finish(self) -> list[Held]:
        """The run is over: returns what ended it skipping."""
        if self._skips >= _AT_THE_END and self._is_independent():
            return self._taken()
        return []

    def _taken(self) -> list[Held]:
        return sorted(self._streak, key=lambda held: held[0].origins[0].order)

    def _is_independent(self) -> bool:
        """Whether a smaller scale would not help: it was no 16-bit number that overflowed."""
        origins = [origin for event, _ in self._streak for origin in event.origins]
        return bool(origins) and any(
            not any(held.dtype in ("float16", "bfloat16") for held in origin.outputs)
            or (origin.nan and not origin.inf)
            for origin in origins
        )
