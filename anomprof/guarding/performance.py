"""Makes the calls of a tape again, in their order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from anomprof.guarding.tape import Attribute, Captured, Entry, Product, rebuilt, tensors_within
from anomprof.tracing.frames import Point


class CannotRepeatError(Exception):
    """Something on the tape cannot be done again; the message says what."""


class Performance:
    """One performance of a tape.

    Attributes:
        points: The user's frames that made the call which is being repeated.
        doubts: What may be different from the first time.
    """

    def __init__(self) -> None:
        self.points: tuple[Point, ...] = ()
        self.doubts: list[str] = []
        self._entry: Entry
        self._values: dict[int, list[torch.Tensor]] = {}
        self._leaves: dict[int, torch.Tensor] = {}

    def play(self, entries: Iterable[Entry]) -> None:
        """Makes all calls.

        Raises:
            CannotRepeatError: A value that a call needs is not there.
            Exception: What a call raises.
        """
        for entry in entries:
            self._entry = entry
            try:
                args, kwargs = self._resolved(entry.args), self._resolved(entry.kwargs)
            except CannotRepeatError:
                if entry.is_engine:
                    raise
                continue  # a look back at an earlier step; what depends on it, will miss it
            call = self._callable(entry)
            self.points = entry.points
            if entry.random is not None:
                entry.random.restore()
            for generator, state in entry.generators:
                generator.set_state(state)
            with contextlib.ExitStack() as stack:
                stack.enter_context(torch.set_grad_enabled(entry.gradients))
                for device, dtype in entry.autocast:
                    stack.enter_context(torch.autocast(device, dtype, cache_enabled=False))
                if entry.is_module:
                    stack.enter_context(_mode_of(entry.call, training=entry.training))
                out = repeat(call, args, kwargs)
            self._values[id(entry)] = list(tensors_within(out))

    def last(self) -> list[torch.Tensor]:
        """Returns the tensors that the last calls returned which returned any."""
        return next((held for held in reversed(self._values.values()) if held), [])

    def _callable(self, entry: Entry) -> Any:
        if isinstance(entry.call, DistributedDataParallel):
            return entry.call.module  # this rank's own part; the others are not waited for
        return entry.call

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, Product):
            made = self._values.get(id(value.entry))
            if made is None:
                left = value.entry.products[value.index]()  # of a call that cannot be repeated any more
                if left is None:
                    raise CannotRepeatError("something that an earlier step had made is gone")
                return self._captured(left)
            if value.index >= len(made):
                raise CannotRepeatError("a call returned fewer tensors than before")
            return made[value.index]
        if isinstance(value, Attribute):
            return getattr(value.module, value.name)
        if isinstance(value, Captured):
            return self._captured(value.tensor)
        return rebuilt(value, self._resolved)

    def _captured(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.grad_fn is None:
            return tensor
        # It hangs on a graph of which no call is on the tape: the repeated part ends here.
        leaf = self._leaves.get(id(tensor))
        if leaf is None:
            leaf = self._leaves[id(tensor)] = tensor.detach().requires_grad_()
            if self._entry.products or self._entry.is_engine:
                self.doubts.append("a part of the graph was made where the guard does not look")
        return leaf


def repeat(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Makes a call that the user's code had made: on the stack, this frame stands for the user's."""
    return call(*args, **kwargs)


@contextlib.contextmanager
def _mode_of(module: nn.Module, *, training: bool) -> Any:
    """Puts a module into the mode in which it was called."""
    if module.training == training:
        yield
        return
    before = [(part, part.training) for part in module.modules()]
    module.train(training)
    try:
        yield
    finally:
        for part, was in before:
            part.training = was
