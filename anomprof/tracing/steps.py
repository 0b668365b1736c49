"""What a training step is in somebody else's script: from one optimizer step to the next."""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass
from typing import Any

import torch

_MOST_STEPS_KEPT = 64  # of the pattern in which several optimizers take turns


@dataclass(slots=True, frozen=True)
class Moment:
    """How far the training was when something happened.

    Attributes:
        counts: Steps that each optimizer had taken, by the order in which they first stepped.
        backwards: Calls of backward that had ended.
        gradients: Calls of ``torch.autograd.grad`` that had ended.
        rounds: How often a loop without optimizer had come round.
        gap: ``"backward"`` between a backward and the optimizer's step, ``"step"`` between that and the next
            forward, "" elsewhere.
        pattern: The optimizers' last steps, by the same order.
    """

    counts: tuple[int, ...]
    backwards: int
    gradients: int
    rounds: int
    gap: str
    pattern: tuple[int, ...]

    def is_same_step(self, later: Moment) -> bool:
        """Whether no optimizer has stepped, and no backward has ended, between two moments."""
        return (self.counts, self.backwards, self.gradients) == (
            later.counts,
            later.backwards,
            later.gradients,
        )

    @property
    def has_begun(self) -> bool:
        """Whether anything had been trained."""
        return bool(self.counts or self.backwards or self.gradients)

    def step(self, optimizers_made: int, levels: tuple[int, ...] = ()) -> int:
        """Returns the user's training step, counted from 0.

        Args:
            optimizers_made: How many optimizers the script has made, stepped or not.
            levels: How deeply the line that steps each optimizer is nested in loops.
        """
        if not self.counts:
            if optimizers_made:  # none has stepped yet: several backwards belong to its first step
                return 0
            return self.rounds
        if len(self.counts) == 1 and optimizers_made <= 1:
            return max(0, self.counts[0] - (self.gap == "step"))
        if len(levels) == len(self.counts) and len(set(levels)) > 1:
            outer = levels.index(min(levels))  # an inner loop trains one, the outer loop is the user's
            return max(0, self.counts[outer] - (self.gap == "step" and self.pattern[-1:] == (outer,)))
        return max(0, self.counts[0] - self._is_within_cycle(optimizers_made))

    def _is_within_cycle(self, optimizers_made: int) -> bool:
        """Whether the first optimizer has stepped in this iteration, and others are still to do so."""
        if self.gap == "step":
            return True
        if not self.counts[0]:
            return False
        for other in range(1, max(len(self.counts), optimizers_made)):
            steps = [index for index, who in enumerate(self.pattern) if who == other]
            leads = [sum(1 for who in self.pattern[:index] if who == 0) for index in steps]
            now = sum(1 for who in self.pattern if who == 0)
            if not leads:
                if len(self.counts) <= other and self.counts[0] == 1 and len(self.counts) < optimizers_made:
                    return True
                continue
            period = leads[-1] - leads[-2] if len(leads) > 1 else 1
            if now == leads[-1] + max(period, 1):
                return True
        return False


class Rounds:
    """How often a loop has come round that has no optimizer, told by the lines that run the engine.

    The line that ran it first leads each round; the line that ran it last before the next lead closes it.
    """

    def __init__(self) -> None:
        self._lead: Any = None
        self._last: Any = None
        self._closing: Any = None
        self._begun = 0

    def run(self, line: Any) -> None:
        """The engine has been run by a line."""
        if not self._begun:
            self._lead = line
        if line == self._lead:
            self._closing = self._last if self._begun else None
            self._begun += 1
        self._last = line

    def done(self, *, in_gap: bool) -> int:
        """Returns how many rounds are over.

        Args:
            in_gap: Whether nothing has been computed since the engine ran last.
        """
        is_open = self._closing is not None and self._closing != self._last
        return max(0, self._begun - (in_gap or is_open))


class Steps:
    """Counts the steps of a run.

    Attributes:
        gap: As in :class:`Moment`.
        recalled: The moment of what is gone through again, once its numbers have been read.
    """

    def __init__(self) -> None:
        self._order: dict[int, int] = {}
        self._counts: list[int] = []
        self._pattern: list[int] = []
        self._optimizers: list[weakref.ref[Any]] = []
        self._made: weakref.WeakSet[Any] = weakref.WeakSet()
        self._older: weakref.WeakSet[Any] = weakref.WeakSet()
        self._backwards = 0
        self._gradients = 0
        self._backwards_unused = 0
        self._backward_rounds, self._gradient_rounds = Rounds(), Rounds()
        self._moment: Moment | None = None
        self.gap = ""
        self.recalled: Moment | None = None

    def now(self) -> Moment:
        """Returns the present moment, or the one that is being recalled."""
        if self.recalled is not None:
            return self.recalled
        if self._moment is None or self._moment.gap != self.gap:
            rounds = self._backward_rounds if self._backwards else self._gradient_rounds
            self._moment = Moment(
                tuple(self._counts),
                self._backwards,
                self._gradients,
                rounds.done(in_gap=self.gap != ""),
                self.gap,
                tuple(self._pattern),
            )
        return self._moment

    def state(self) -> dict[str, Any]:
        """Returns what :meth:`go_to` needs to come back to this moment."""
        kept = ("gap", "_backwards", "_gradients", "_backwards_unused", "_order", "_counts", "_pattern")
        more = ("_optimizers", "_backward_rounds", "_gradient_rounds")
        return {name: copy.copy(getattr(self, name)) for name in (*kept, *more)}

    def go_to(self, state: dict[str, Any]) -> None:
        """Counts on from an earlier moment, or from a later one after that."""
        for name, value in state.items():
            setattr(self, name, copy.copy(value))
        self._moment = None

    def make_node(self) -> None:
        """An autograd node was made outside the engine: in a loop without optimizer, the next forward."""
        if not self._made and not self._counts:
            self.gap = ""

    def begin_forward(self) -> None:
        """A forward pass begins, or data for it is fetched."""
        self.gap = ""

    def end_backward(self, line: Any, *, accumulates: bool) -> None:
        """The autograd engine has ended a run.

        Args:
            line: Where it was started.
            accumulates: Whether it left gradients in the leaves, as ``backward`` does and ``grad`` does not.
        """
        if accumulates:
            self._backwards += 1
            self._backwards_unused += 1
            self._backward_rounds.run(line)
        else:
            self._gradients += 1
            self._gradient_rounds.run(line)
        if accumulates or not self._made:
            self.gap = "backward"
        self._moment = None

    def clear_gradients(self) -> None:
        """Gradients are dropped: if no step has used them, the loop has left its update out.

        With several optimizers the gradients may have been another one's by-product.
        """
        if self._backwards_unused and len(self._counts) == 1 and self.optimizers_made() == 1:
            self._counts[0] += 1
            self._moment = None
        self._backwards_unused = 0

    def end_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has taken its step, or a GradScaler has skipped it."""
        number = self.number_of(optimizer)
        self._counts[number] += 1
        self._backwards_unused = 0
        self._pattern = [*self._pattern, number][-_MOST_STEPS_KEPT:]
        self.gap = "step"
        self._moment = None

    @property
    def has_begun(self) -> bool:
        """Whether anything was trained yet."""
        return bool(self._counts or self._backwards or self._gradients)

    def count(self) -> int:
        """Returns how many steps were taken: those of the optimizer that stepped most."""
        return max(self._counts, default=self._backwards or self._gradients)

    def add_optimizer(self, optimizer: torch.optim.Optimizer, *, is_older: bool = False) -> None:
        """An optimizer has been made.

        Args:
            optimizer: It.
            is_older: Whether it was there before the trace: perhaps one that nobody uses any more.
        """
        (self._older if is_older else self._made).add(optimizer)

    def optimizers_made(self) -> int:
        """Returns how many optimizers there are, stepped or not; older ones count as one until they step."""
        return max(len(self._made), len(self._counts), min(len(self._older), 1))

    def taken_by(self, optimizer: torch.optim.Optimizer) -> int:
        """Returns how many steps one optimizer has taken."""
        return self._counts[self.number_of(optimizer)]

    def number_of(self, optimizer: torch.optim.Optimizer) -> int:
        """Returns which optimizer it is, in the order in which they first stepped."""
        number = self._order.get(id(optimizer))
        if number is not None and self._optimizers[number]() is optimizer:
            return number
        gone = [place for place, held in enumerate(self._optimizers) if held() is None]
        if gone:  # the script has made a new one in its place, for the next epoch perhaps: it counts on
            number = self._order[id(optimizer)] = gone[0]
            self._optimizers[number] = weakref.ref(optimizer)
        else:
            number = self._order[id(optimizer)] = len(self._counts)
            self._counts.append(0)
            self._optimizers.append(weakref.ref(optimizer))
        return number
