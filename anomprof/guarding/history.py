"""The last steps in numbers: how a training came to where it went bad."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

_KEPT = 100  # steps
_ENOUGH = 20  # steps before a spike can be told from a start
_SPIKE = 10.0  # times the usual spread above the usual value (of the logarithm)


@dataclass(slots=True)
class StepRow:
    """One step.

    Attributes:
        step: Counted from 0.
        loss: The last that backward was called on; None where it was no single number.
        norms: 2-norm of each parameter's gradient, in the optimizer's order.
        rates: Learning rate of each parameter group.
        scale: Of the loss scaler; None without one.
    """

    step: int
    loss: float | None
    norms: list[float]
    rates: list[float]
    scale: float | None = None

    @property
    def norm(self) -> float:
        """2-norm of all gradients together."""
        return math.hypot(*self.norms) if self.norms else 0.0


class History:
    """The last steps.

    Attributes:
        rows: Oldest first.
        names: Of the parameters whose gradients' norms are kept.
    """

    def __init__(self) -> None:
        self.rows: deque[StepRow] = deque(maxlen=_KEPT)
        self.spikes: dict[str, list[tuple[int, float, float]]] = {"loss": [], "gradient norm": []}
        self._usual: dict[str, tuple[float, float, int]] = {}

    def add(self, row: StepRow) -> None:
        """A step is over."""
        self.rows.append(row)
        self._check("gradient norm", row.step, row.norm)
        if row.loss is not None:
            self._check("loss", row.step, abs(row.loss))

    def _check(self, what: str, step: int, value: float) -> None:
        """Compares a value's logarithm with its running mean and spread."""
        if not 0 < value < math.inf:
            return
        logarithm = math.log(value)
        mean, spread, seen = self._usual.get(what, (logarithm, 0.0, 0))
        deviation = abs(logarithm - mean)
        if seen >= _ENOUGH and logarithm > mean + max(_SPIKE * spread, math.log(_SPIKE)):
            if len(self.spikes[what]) < _KEPT:
                self.spikes[what].append((step, value, math.exp(mean)))
            return  # what is unusual does not become the measure of what is usual
        weight = max(1 / (seen + 1), 1 / _KEPT)
        self._usual[what] = (
            mean + weight * (logarithm - mean),
            spread + weight * (deviation - spread),
            seen + 1,
        )
