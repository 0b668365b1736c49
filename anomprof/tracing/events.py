"""Where bad values came from: one event per op whose result was bad, linked to the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anomprof.tracing.calls import Place
from anomprof.tracing.contents import Contents
from anomprof.tracing.steps import Moment

_MOST_ORIGINS = 4  # kept per event: a value that many faults flow into names the first ones
_MOST_LINKS = 64  # length of a chain


@dataclass(slots=True, eq=False)
class NodeSite:
    """An autograd node that was running, and the forward op that had made it.

    Attributes:
        name: As ``SqrtBackward0``.
        number: Its sequence number: what tells two nodes of one name apart.
        op: The forward op; "" where it is not known.
        place: Where that op ran; None where it is not known.
        keeps_result: Whether it computes with what that op returned.
    """

    name: str
    number: int
    op: str
    place: Place | None
    keeps_result: bool = False


@dataclass(slots=True, eq=False)
class Event:
    """One op whose result was bad.

    Attributes:
        order: Counts all events: what came first.
        phase: ``forward``, ``backward``, ``optimizer``, ``input``.
        op: As ``aten::sqrt``.
        place: Line and module; in backward those of the Python code that ran there, if any did.
        nan, inf: What the result held.
        node: The running autograd node, in backward.
        from_python: Whether, in backward, Python code ran the op: a hook, a custom function, a recomputation.
        in_library: Whether that Python code is a library's.
        is_literal: Whether the code wrote this value on purpose (a mask of -inf) or it only follows from one.
        is_outside: Whether the value came from outside: no op that was seen made it.
        is_uninitialised: Whether it is memory that nobody had filled.
        parent: The event whose value explains this one; None for an origin.
        origins: The events that began it, the earliest first; itself for an origin.
        first: For an origin inside one autograd node, its first op that was bad.
        owners: Parameters that were written, or to which the written state belongs.
        is_step: Whether an optimizer's step did it.
        message: What else there is to say.
        depth: Length of the chain from the origin.
    """

    order: int
    moment: Moment
    phase: str
    op: str
    place: Place
    nan: bool
    inf: bool
    inputs: tuple[Contents, ...] = ()
    outputs: tuple[Contents, ...] = ()
    node: NodeSite | None = None
    from_python: bool = False
    in_library: bool = False
    is_literal: bool = False
    is_outside: bool = False
    is_uninitialised: bool = False
    is_compiled: bool = False
    parent: Event | None = None
    origins: tuple[Event, ...] = ()
    first: Event | None = None
    owners: tuple[Any, ...] = ()
    is_step: bool = False
    message: str = ""
    depth: int = 0

    @property
    def kind(self) -> str:
        """``nan`` or ``inf``: what the result's first kind of bad value is.

        NaN, where the result holds both.
        """
        return "nan" if self.nan else "inf"

    @property
    def is_all_literal(self) -> bool:
        """Whether nothing but values that the code wrote on purpose began it."""
        return all(origin.is_literal for origin in self.origins)

    def path(self) -> list[Event]:
        """Returns the events from the origin to this one."""
        events = [self]
        while events[-1].parent is not None and len(events) < _MOST_LINKS:
            events.append(events[-1].parent)
        return events[::-1]


def merged(events: list[Event]) -> tuple[Event, ...]:
    """Returns the origins of several events, the earliest first."""
    found = {id(origin): origin for event in events for origin in event.origins}
    return tuple(sorted(found.values(), key=lambda origin: origin.order)[:_MOST_ORIGINS])
