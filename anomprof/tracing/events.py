"""Bad values and where they came from: one event per op whose result was bad, linked to the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from anomprof.sites import StorageReference, storage_key
from anomprof.tracing.calls import Place
from anomprof.tracing.contents import Contents
from anomprof.tracing.steps import Moment

if TYPE_CHECKING:
    from anomprof.tracing.sight import Seen

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
    """

    name: str
    number: int
    op: str
    place: Place | None


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


@dataclass(slots=True)
class Mark:
    """What is known to be bad in one piece of memory.

    Attributes:
        nan, inf: The last event that wrote such a value there.
        absorbed: An event whose bad value an op turned into the finite one that is there.
    """

    reference: StorageReference
    nan: Event | None = None
    inf: Event | None = None
    absorbed: Event | None = None

    def event(self, is_nan: bool) -> Event | None:
        """Returns the event that explains a NaN or an Inf, the other kind's where there is none."""
        return (self.nan or self.inf) if is_nan else (self.inf or self.nan)


class Marks:
    """All memory that is known to hold bad values."""

    def __init__(self) -> None:
        self.by_key: dict[int, Mark] = {}

    def __bool__(self) -> bool:
        return bool(self.by_key)

    def of(self, seen: Seen) -> Mark | None:
        """Returns what is known of a tensor's memory."""
        if not self.by_key:
            return None
        key = seen.key
        return None if key is None else self.by_key.get(key)

    def touch(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether anything is known of the memory of one of several tensors."""
        for tensor in tensors:
            try:
                if storage_key(tensor) in self.by_key:
                    return True
            except (RuntimeError, NotImplementedError):  # sparse tensors have no one storage
                continue
        return False

    def add(self, seen: Seen, event: Event, *, nan: bool, inf: bool) -> None:
        """Notes that an event left a bad value in a tensor."""
        mark = self._mark(seen)
        if mark is None:
            return
        if nan:
            mark.nan = event
        if inf:
            mark.inf = event

    def absorb(self, seen: Seen, event: Event) -> None:
        """Notes that a tensor's finite value was made of a bad one."""
        mark = self._mark(seen)
        if mark is not None and mark.nan is None and mark.inf is None:
            mark.absorbed = event

    def clear(self, seen: Seen) -> None:
        """Notes that a tensor was overwritten with finite values, if its memory holds nothing bad now."""
        key = seen.key
        if key is None or key not in self.by_key:
            return
        try:
            if seen.memory_is_finite():
                del self.by_key[key]
        except (RuntimeError, NotImplementedError):
            return

    def forget_freed(self) -> None:
        """Drops what is known of memory that is no longer in use."""
        for key in [key for key, mark in self.by_key.items() if mark.reference.is_freed]:
            del self.by_key[key]

    def events(self) -> Iterator[Event]:
        """Yields every event that explains something that is still bad."""
        for mark in self.by_key.values():
            for event in (mark.nan, mark.inf, mark.absorbed):
                if event is not None:
                    yield event

    def _mark(self, seen: Seen) -> Mark | None:
        key = seen.key
        if key is None:
            return None
        mark = self.by_key.get(key)
        if mark is None and (memory := seen.memory()) is not None:
            mark = self.by_key[key] = Mark(memory)
        return mark


def merged(events: list[Event]) -> tuple[Event, ...]:
    """Returns the origins of several events, the earliest first."""
    found = {id(origin): origin for event in events for origin in event.origins}
    return tuple(sorted(found.values(), key=lambda origin: origin.order)[:_MOST_ORIGINS])
