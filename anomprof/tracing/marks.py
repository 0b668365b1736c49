"""Memory that is known to hold bad values, and the events that explain them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from anomprof.sites import StorageReference, storage_key
from anomprof.tracing.contents import Contents
from anomprof.tracing.events import Event
from anomprof.tracing.sight import Seen


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

    def _mark(self, seen: Seen) -> Mark | None:
        key = seen.key
        if key is None:
            return None
        mark = self.by_key.get(key)
        if mark is None and (memory := seen.memory()) is not None:
            mark = self.by_key[key] = Mark(memory)
        return mark


class Operand(NamedTuple):
    """A tensor that an op was given.

    Attributes:
        seen: The tensor.
        held: What it held; None where the op has overwritten it.
        mark: What was known of its memory.
    """

    seen: Seen
    held: Contents | None
    mark: Mark | None
