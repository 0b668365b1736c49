"""What explains a bad value: the operand that held one, or the op itself."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable

import torch

from anomprof.tracing.calls import Place
from anomprof.tracing.contents import Contents
from anomprof.tracing.events import Event, merged
from anomprof.tracing.marks import Operand
from anomprof.tracing.ops import ABSORB_MINUS_INF
from anomprof.tracing.sight import Seen
from anomprof.tracing.stakes import is_parameter
from anomprof.tracing.steps import Moment

_MOST_RECENT = 64  # events among which a bad value is looked for that came by unseen ways
_MOST_FORWARD = 2000  # forward events kept by the number of their autograd node
_LONGEST_CHAIN = 48  # links; beyond that a chain keeps its two ends

#: Makes the event of a value from outside: tensor, contents, place that met it, op to name.
OutsideEvent = Callable[[Seen, Contents, Place, str], Event]

_FILLS = frozenset(
    """
    full full_like new_full fill fill_ masked_fill masked_fill_ scalar_tensor constant_pad_nd
    """.split()
)
_LOGARITHMS = frozenset(["log", "log2", "log10", "log_"])


class Explanation:
    """Decides what explains an event.

    NaN and Inf are followed separately: an Inf that the code wrote on purpose (a mask) explains no NaN,
    an Inf that came of an overflow does.
    """

    def __init__(self, outside: OutsideEvent) -> None:
        self._outside = outside
        self._recent: deque[Event] = deque(maxlen=_MOST_RECENT)
        self._by_number: dict[int, Event] = {}
        self._read: Event | None = None

    def remember(self, event: Event, number: int) -> None:
        """Keeps a new event for those that follow.

        Args:
            event: What was explained.
            number: That of the autograd node of its op; -1 where it made none.
        """
        self._recent.append(event)
        if event.phase == "forward" and number >= 0:
            self._by_number[number] = event
            if len(self._by_number) > _MOST_FORWARD:
                del self._by_number[next(iter(self._by_number))]

    def last_of(self, moment: Moment) -> Event | None:
        """Returns the last event of a step that was not meant, None where there was none."""
        for event in reversed(self._recent):
            if not event.is_all_literal and event.moment.is_same_step(moment):
                return event
        return None

    def note_read(self, event: Event) -> None:
        """A bad number was read into Python: it may come back as an argument."""
        self._read = event

    def explain(self, event: Event, operands: list[Operand], numbers: tuple[bool, bool]) -> None:
        """Sets parent, origins and purpose of an event.

        Args:
            event: What happened.
            operands: What the op was given.
            numbers: Whether NaN, and whether Inf, was among its plain numbers.
        """
        nans, infs = self._sources(event, operands)
        meant = [source for source in infs if source.is_literal]
        unmeant = [source for source in infs if not source.is_literal]
        if event.nan:
            sources = nans or unmeant
        else:
            sources = unmeant or nans
            if not sources and not _gained_plus_inf(event, operands):
                sources = meant
        sources = _beyond_node(event, sources)
        came_as_number = any(numbers) and not sources and event.first is None
        if came_as_number and self._read is not None and (self._read.nan or not numbers[0]):
            sources = [self._read]
        if sources:
            event.origins = merged(sources)
            event.parent = min(sources, key=lambda source: source.origins[0].order)
            event.depth = event.parent.depth + 1
            if event.depth > _LONGEST_CHAIN:
                event.parent, event.depth = event.origins[0], 1
            event.is_literal = all(origin.is_literal for origin in event.origins) and (
                not event.nan or any(source.nan for source in sources)
            )
            return
        event.origins = (event,)
        event.is_literal = _is_meant(event, operands, numbers)
        self._blame_forward(event)

    def _sources(self, event: Event, operands: list[Operand]) -> tuple[list[Event], list[Event]]:
        nans: list[Event] = []
        infs: list[Event] = []
        for seen, held, mark in operands:
            if held is None:
                nans += [mark.nan] if mark is not None and mark.nan is not None else []
                infs += [mark.inf] if mark is not None and mark.inf is not None else []
                continue
            if held.nan:
                nans.append((mark.event(True) if mark else None) or self._unseen(event, seen, held))
            if held.inf:
                infs.append((mark.event(False) if mark else None) or self._unseen(event, seen, held))
        return nans, infs

    def _unseen(self, event: Event, seen: Seen, held: Contents) -> Event:
        """Returns the event of a bad operand that no op was seen to make."""
        for earlier in reversed(self._recent):
            # Collectives, and code that is not torch's, move values unseen.
            if (
                earlier.phase == event.phase
                and earlier.moment is event.moment
                and not earlier.is_literal
                and (earlier.nan or not held.nan)
                and any(out.numel >= held.numel for out in earlier.outputs)
            ):
                return earlier
        live = seen.live
        owner = live if live is not None and is_parameter(live) else None
        made = self._outside(seen, held, event.place, _name_of_unseen(event, owner))
        if event.phase == "backward" or (event.phase == "optimizer" and owner is None):
            made.phase, made.is_literal = "backward", False
        elif owner is not None:
            made.phase, made.owners = "parameter", (weakref.ref(owner),)
        made.order = event.order - 1
        return made

    def _blame_forward(self, event: Event) -> None:
        """A node computes with what its forward op returned: if that was bad already, it began there.

        Likewise in a compiled region, whose forward and backward are one op each.
        """
        if event.node is None or event.from_python:
            return
        earlier = self._by_number.get(event.node.number)
        if (
            earlier is not None
            and (earlier.is_compiled or event.node.keeps_result)
            and not earlier.is_literal
            and earlier.origins == (earlier,)
        ):
            event.parent, event.origins = earlier, (earlier,)


def _name_of_unseen(event: Event, owner: torch.Tensor | None) -> str:
    if owner is not None:
        return "parameter"
    return "input" if event.phase in ("forward", "input") else event.op


def _beyond_node(event: Event, sources: list[Event]) -> list[Event]:
    """Within one autograd node what began inside it began with the node, unless something bad came in."""
    if event.node is None or event.from_python:
        return sources
    node = (event.node.number, event.node.name)
    inside = [
        source
        for source in sources
        if source.node is not None
        and not source.from_python
        and (source.node.number, source.node.name) == node
        and source.origins == (source,)
    ]
    if not inside or len(inside) < len(sources):
        return [source for source in sources if source not in inside]
    begun = min(inside, key=lambda source: source.order)
    event.first = begun.first or begun
    return []


def _gained_plus_inf(event: Event, operands: list[Operand]) -> bool:
    """Whether +Inf came out of an op that turns -Inf, all that went in, into something finite."""
    if event.op not in ABSORB_MINUS_INF or not any(held.plus_inf for held in event.outputs):
        return False
    return not any(held.plus_inf for _, held, _ in operands if held is not None)


def _is_meant(event: Event, operands: list[Operand], numbers: tuple[bool, bool]) -> bool:
    """Whether the code wrote an event's value on purpose."""
    has_nan, has_inf = numbers
    base = event.op.rpartition("::")[2]
    if base == "lift_fresh":  # torch.tensor(...)
        return not event.nan or all(held.nan + held.inf == held.numel for held in event.outputs)
    if event.nan:
        return has_nan and base in _FILLS
    if has_inf and event.phase != "optimizer":
        return True
    if base in _LOGARITHMS and operands:
        seen, held, _ = operands[0]
        if held is not None and not seen.requires_grad and (held.low, held.high) == (0.0, 1.0):
            return seen.holds_only(0.0, 1.0)  # a mask of zeros and ones
    return False
