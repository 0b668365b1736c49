"""From an op whose result is bad to an event: phase, place, operands and owners."""

from __future__ import annotations

import weakref

from anomprof.tracing.calls import NOWHERE, Place
from anomprof.tracing.contents import Contents, of_number
from anomprof.tracing.events import Event
from anomprof.tracing.marks import Marks, Operand
from anomprof.tracing.scene import Scene
from anomprof.tracing.sight import Seen, Sight
from anomprof.tracing.stakes import Stakes
from anomprof.tracing.steps import Moment, Steps

_MOST_INPUTS, _MOST_NUMBERS, _MOST_OUTPUTS, _MOST_OWNERS = 6, 2, 4, 8  # kept per event


class Circumstances:
    """Makes events.

    Args:
        steps: Know how far the training is.
        stakes: Know the parameters and the state of optimizers.
        marks: Know what is bad already.
    """

    def __init__(self, steps: Steps, stakes: Stakes, marks: Marks) -> None:
        self._steps = steps
        self._stakes = stakes
        self._marks = marks
        self._order = 0

    def operands(self, sight: Sight) -> list[Operand]:
        """Returns what an op was given, as far as it can be bad."""
        if sight.kind.is_arrival:
            return []
        operands: list[Operand] = []
        for seen in sight.arguments:
            if not seen.is_number:
                continue
            is_written = seen in sight.written
            if is_written and sight.kind.overwrites:
                continue
            operands.append(Operand(seen, None if is_written else seen.held, self._marks.of(seen)))
        return operands

    def event(self, scene: Scene, sight: Sight, operands: list[Operand], bad: list[Seen]) -> Event:
        """Returns the event of an op whose results are bad; nothing explains it yet."""
        results = [held for seen in bad if (held := seen.held) is not None]
        event = self._bare_event(
            self._phase(scene, sight, operands),
            sight.kind.name,
            NOWHERE,
            scene.moment,
            nan=any(held.nan for held in results),
            inf=any(held.inf for held in results),
        )
        scene.locate()
        event.place, event.node = scene.place, scene.node
        event.from_python, event.in_library = scene.from_python, scene.in_library
        event.is_compiled = scene.is_compiled
        event.outputs = tuple(results[:_MOST_OUTPUTS])
        event.inputs = _inputs(sight, operands)
        event.is_uninitialised = sight.kind.is_uninitialised
        if event.phase == "optimizer":
            owners = [parameter for seen in bad if (parameter := self._stakes.owner(seen)) is not None]
            event.owners = tuple(weakref.ref(owner) for owner in owners[:_MOST_OWNERS])
            if not owners and scene.stepping is not None:
                event.owners = self._stakes.state_owners(scene.stepping.optimizer, bad)
                in_hand = scene.in_hand.get(len(sight.made), ())
                if in_hand and not event.owners:
                    event.owners = (in_hand[sight.made.index(bad[0])],)
            event.is_step = scene.stepping is not None
        return event

    def outside(
        self,
        seen: Seen,
        held: Contents,
        place: Place,
        op: str,
        message: str = "",
        phase: str = "input",
    ) -> Event:
        """Makes the event of a bad value that comes from outside, and marks its memory."""
        event = self._bare_event(phase, op, place, self._steps.now(), nan=held.nan > 0, inf=held.inf > 0)
        event.outputs = (held,)
        event.is_outside, event.message = True, message
        event.is_literal = not held.nan and not held.plus_inf and seen.holds_only(0.0, float("-inf"))
        event.origins = (event,)
        self._marks.add(seen, event, nan=held.nan > 0, inf=held.inf > 0)
        return event

    def _bare_event(
        self, phase: str, op: str, place: Place, moment: Moment, *, nan: bool, inf: bool
    ) -> Event:
        self._order += 1
        return Event(self._order, moment, phase, op, place, nan, inf)

    def _phase(self, scene: Scene, sight: Sight, operands: list[Operand]) -> str:
        if scene.is_in_backward:
            return "backward"
        if scene.is_fetching or sight.kind.is_arrival:
            return "input"
        gap = scene.moment.gap
        if not gap or scene.call is not None:
            return "forward"
        is_loss_code = scene.makes_graph and not sight.written
        if is_loss_code and any(operand.seen.requires_grad for operand in operands):
            return "forward"
        touched = [*(operand.seen for operand in operands), *sight.written]
        if gap == "step" and scene.stepping is None and not self._stakes.touches(touched):
            return "forward"
        return "optimizer"


def _inputs(sight: Sight, operands: list[Operand]) -> tuple[Contents, ...]:
    """Returns what an op was given, plain numbers in their places among the tensors."""
    held = [operand.held for operand in operands[:_MOST_INPUTS]]
    for place, number in reversed(sight.numbers[:_MOST_NUMBERS]):
        held.insert(place, of_number(number))
    return tuple(contents for contents in held if contents is not None)
