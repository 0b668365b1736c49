"""What one op was given, wrote and made, tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from anomprof.sites import StorageReference, memory_is_filled_by, storage_key, without_overrides
from anomprof.tracing.contents import Contents, is_finite, memory_of, tensors_in
from anomprof.tracing.looks import Looks, is_number
from anomprof.tracing.ops import OpKind


class Seen:
    """A tensor as an op met it; what it holds is counted when first asked for."""

    __slots__ = ("_held", "_is_counted", "_looks", "tensor")

    def __init__(self, tensor: torch.Tensor, looks: Looks) -> None:
        self.tensor = tensor
        self._looks = looks
        self._held: Contents | None = None
        self._is_counted = False

    @property
    def held(self) -> Contents | None:
        """What it holds; None where that cannot be counted."""
        if not self._is_counted:
            self._held, self._is_counted = self._looks.thorough(self.tensor), True
        return self._held

    @property
    def is_bad(self) -> bool:
        """Whether anything in it is NaN or Inf."""
        return self.is_number and self.held is not None and self.held.is_bad

    @property
    def if_bad(self) -> Contents | None:
        """What it holds, if something in it is bad: one sum tells that nothing is."""
        if not self._is_counted:
            self._held, self._is_counted = self._looks.if_bad(self.tensor), True
        return self._held if self._held is not None and self._held.is_bad else None

    @property
    def live(self) -> torch.Tensor | None:
        """The tensor, if it still exists."""
        return self.tensor

    @property
    def is_number(self) -> bool:
        """Whether its elements can be NaN or Inf."""
        return is_number(self.tensor)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through it."""
        return self.tensor.requires_grad

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return self.tensor.numel()

    @property
    def key(self) -> int | None:
        """What tensors sharing its memory have in common; None for sparse ones, which have no one memory."""
        try:
            return storage_key(self.tensor)
        except (RuntimeError, NotImplementedError):
            return None

    def memory(self) -> StorageReference | None:
        """Returns a weak reference to its memory; None for one that is gone."""
        return StorageReference(self.tensor)

    def memory_is_finite(self) -> bool:
        """Whether, the tensor itself being finite, all the memory is that it is a part of."""
        return memory_is_filled_by(self.tensor) or is_finite(memory_of(self.tensor))

    def is_zero(self) -> bool:
        """Whether all its elements are 0."""
        return bool(self.numel) and not bool(self.tensor.any())

    def holds_only(self, first: float, second: float) -> bool:
        """Whether each element is one of two numbers."""
        with without_overrides():
            return bool(((self.tensor == first) | (self.tensor == second)).all())


#: How many tensors stood before it, and its value.
Number = tuple[int, float]
#: Makes of a tensor what is known of it.
See = Callable[[torch.Tensor], Seen]


class Sight:
    """One op that has run.

    Args:
        kind: What it does.
        args, kwargs, out: What it was given and returned.
        given: How the tensors are seen that it was given.
        made: How those that it wrote or returned are, if not in the same way.

    Attributes:
        kind: What it does.
        arguments: The tensors that it was given, those written included.
        written: Those of them that it wrote.
        made: What it wrote and what it returned, each once.
        answers: Those of them that count; the others are workings of the op's own.
        numbers: Its plain numbers, where they are operands or bad, each after how many tensors it stood.
    """

    __slots__ = ("answers", "arguments", "kind", "made", "numbers", "written")

    def __init__(
        self, kind: OpKind, args: Any, kwargs: Any, out: Any, given: See, made: See | None = None
    ) -> None:
        made = given if made is None else made
        kwargs = kwargs or {}
        self.kind = kind
        self.arguments: list[Seen] = []
        self.written: list[Seen] = []
        targets = [target for target in kind.written(args, kwargs) if isinstance(target, torch.Tensor)]
        for tensor in tensors_in((args, kwargs)):
            if targets and _is_among(tensor, targets):
                seen = made(tensor)
                self.written.append(seen)
            else:
                seen = given(tensor)
            self.arguments.append(seen)
        self.made = list(self.written)
        for tensor in tensors_in(out):
            if not (targets and _is_among(tensor, targets)):
                self.made.append(made(tensor))
        self.answers = self.made if kind.answers is None else self.made[: kind.answers]
        self.numbers = _numbers(kind, args, kwargs)

    def bad_numbers(self) -> tuple[bool, bool]:
        """Returns whether NaN, and whether Inf, was among its plain numbers."""
        bad = [number for _, number in self.numbers if _is_bad(number)]
        return any(number != number for number in bad), any(number == number for number in bad)


def _numbers(kind: OpKind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Number, ...]:
    found: list[Number] = []
    place = 0
    for value in args:
        if isinstance(value, torch.Tensor):
            place += 1
        elif isinstance(value, (list, tuple)):
            place += sum(isinstance(inner, torch.Tensor) for inner in value)
            found += [(place, inner) for inner in value if _is_bad(inner)]
        elif _is_bad(value) or (kind.has_number_operands and type(value) in (float, int)):
            found.append((place, float(value)))
    found += [(place, value) for value in kwargs.values() if _is_bad(value)]
    return tuple(found)


def _is_bad(value: Any) -> bool:
    return isinstance(value, float) and value - value != 0


def _is_among(tensor: torch.Tensor, tensors: Iterable[torch.Tensor]) -> bool:
    return any(tensor is other for other in tensors)  # == would compare the elements
