"""Writes one thread's tape: every call of torch outside modules, and every call of a module from there."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from anomprof.guarding.tape import Entry, Tape, tensors_within
from anomprof.replay import RandomState
from anomprof.sites import innermost_function_mode, pop_function_mode, push_function_mode
from anomprof.tracing.frames import FrameReader, Point

#: Parts of names of functions that draw random numbers.
_RANDOM = (
    *("rand", "drop", "bernoulli", "multinomial", "normal", "uniform", "exponential", "poisson", "gumbel"),
    *("cauchy", "geometric", "rrelu", "sample", "scaled_dot_product", "multi_head", "rnn", "lstm", "gru"),
)
_READS = frozenset(
    [
        *("__get__", "size", "dim", "stride", "numel", "__len__", "__hash__", "is_floating_point"),
        *("is_complex", "_set_grad_enabled", "untyped_storage", "storage_offset", "data_ptr", "get_device"),
        *("is_inference", "_record_function_enter_new"),
        *("is_contiguous", "element_size", "is_same_size", "type", "ndimension", "nelement"),
    ]
)


class Recorder(TorchFunctionMode):
    """A function mode: torch hands it the calls of its functions.

    It is off while a module runs that was called from outside all modules, so that what runs there costs
    nothing: the module is called again as a whole.

    Args:
        frames: Reads the user's frames.
        is_parameter: Whether a tensor's memory is that of a parameter.
        before_update: Called before a function changes a parameter, with that and the other operands. Returns
            whether the change is to be made.
        after_update: Called after a parameter was changed.
        after_doubtful: Called with each call and what it returned while there is a doubtful one.

    Attributes:
        stepping: The optimizers whose step is running, the innermost last.
        doubtful: A call of a module in evaluation that returned bad values, which may yet be dropped.
        depth: How many calls are running whose inside is not recorded.
        rests: Records nothing.
    """

    def __init__(
        self,
        frames: FrameReader,
        is_parameter: Callable[[torch.Tensor], bool],
        before_update: Callable[[torch.Tensor, list[torch.Tensor]], bool],
        after_update: Callable[[torch.Tensor], None],
        after_doubtful: Callable[[Entry, Any], None],
    ) -> None:
        super().__init__()
        self.tape = Tape()
        self.depth = 0
        self.rests = False
        self._frames = frames
        self._is_parameter = is_parameter
        self._before_update = before_update
        self._after_update = after_update
        self.stepping: list[tuple[Any, bool, bool]] = []
        self.doubtful: Entry | None = None
        self._after_doubtful = after_doubtful
        self._generators: weakref.WeakKeyDictionary[nn.Module, list[torch.Generator]] = (
            weakref.WeakKeyDictionary()
        )
        self._draws: dict[Any, bool] = {}
        self._changes: dict[Any, bool] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Makes a call and notes it."""
        kwargs = kwargs or {}
        if self.depth or self.rests:
            return func(*args, **kwargs)
        name = func.__name__
        if name in _READS or name.startswith("profiler::"):
            out = func(*args, **kwargs)
            if type(out) is torch.Tensor:  # as p.grad, x.T
                self._note(func, args, kwargs, sys._getframe(1), out)
            return out
        changes = self._changes.get(func)
        if changes is None:
            changes = self._changes[func] = _is_change(name)
        if changes or "out" in kwargs:
            return self._change(func, name, args, kwargs, sys._getframe(1))
        entry = self.begin(func, args, kwargs, sys._getframe(1))
        draws = self._draws.get(func)
        if draws is None:
            draws = self._draws[func] = any(part in name for part in _RANDOM)
        if draws:
            self._keep_random(entry, kwargs)
        self.depth += 1
        try:
            out = func(*args, **kwargs)
            if type(out) is not float and type(out) is not int and out is not None:
                self.tape.keep_products(entry, out)
            if self.doubtful is not None:
                self._after_doubtful(entry, out)
        finally:
            self.depth -= 1
        return out

    def call_root(
        self, module: nn.Module, call: Callable[..., Any], args: Any, kwargs: Any, frame: Any
    ) -> Any:
        """Calls a module that no other module called; its inside is not recorded."""
        with self.paused():
            entry = self.begin(module, args, kwargs, frame)
            entry.is_module, entry.training = True, module.training
            entry.random = RandomState.take()
            if generators := self._generators_of(module, frame):
                entry.generators = tuple((generator, generator.get_state()) for generator in generators)
            out = call(*args, **kwargs)
            self.tape.keep_products(entry, out)
        return out

    def _generators_of(self, module: nn.Module, frame: Any) -> list[torch.Generator]:
        """Returns the random generators that a module holds, or the code that calls it."""
        known = self._generators.get(module)
        if known is None:
            held = [value for part in module.modules() for value in vars(part).values()]
            while frame is not None:
                held.extend(frame.f_locals.values())
                frame = frame.f_back
            found = {id(value): value for value in held if type(value) is torch.Generator}
            known = self._generators[module] = list(found.values())
        return known

    def call_whole(
        self, call: Callable[..., Any], again: Callable[..., Any], args: Any, kwargs: Any, frame: Any
    ) -> Any:
        """Calls something that cannot be recorded piece by piece; a replay calls ``again`` instead."""
        with self.paused():
            entry = self.begin(again, args, kwargs, frame)
            entry.random = RandomState.take()
            out = call(*args, **kwargs)
            self.tape.keep_products(entry, out)
        return out

    def fetched(self, batch: Any, again: Callable[..., Any], args: Any, frame: Any) -> None:
        """A data loader has delivered a batch; a replay calls ``again`` with ``args`` for the same."""
        with self.paused():
            entry = self.begin(again, args, {}, frame)
            self.tape.keep_products(entry, batch)

    def begin_step(self, optimizer: Any, *, has_closure: bool) -> None:
        """An optimizer begins its step: what it does itself is not recorded, what its closure does is."""
        for stale in [step for step in self.stepping if step[0] is optimizer]:
            self._leave(stale)  # it raised
        is_popped = not has_closure and innermost_function_mode() is self
        if is_popped:
            pop_function_mode()
        self.depth += not has_closure
        self.stepping.append((optimizer, is_popped, has_closure))

    def end_step(self, optimizer: Any) -> None:
        """An optimizer has ended its step."""
        for step in [step for step in self.stepping if step[0] is optimizer]:
            self._leave(step)

    def stepped(self, optimizer: Any, points: tuple[Point, ...]) -> None:
        """Puts an update on the tape: to be done again only to explain an error of autograd."""
        again = functools.partial(_step_again, weakref.ref(optimizer))
        self.tape.add(Entry(again, (), {}, points, gradients=True, is_update=True))

    def _leave(self, step: tuple[Any, bool, bool]) -> None:
        self.stepping.remove(step)
        self.depth -= not step[2]
        if step[1]:
            push_function_mode(self)

    def begin(self, call: Any, args: Any, kwargs: Any, frame: Any) -> Entry:
        """Puts a call that is about to be made on the tape."""
        encode = self.tape.encode
        entry = Entry(
            call,
            tuple([encode(value) for value in args]),
            {key: encode(value) for key, value in kwargs.items()} if kwargs else {},
            self._frames.read(frame),
            torch.is_grad_enabled(),
        )
        if torch.is_autocast_enabled():
            entry.autocast = ((_active_device(), torch.get_autocast_dtype(_active_device())),)
        elif torch.is_autocast_enabled("cpu"):
            entry.autocast = (("cpu", torch.get_autocast_dtype("cpu")),)
        self.tape.add(entry)
        return entry

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Records nothing meanwhile, at no cost where no other function mode was entered since."""
        is_popped = innermost_function_mode() is self
        if is_popped:
            pop_function_mode()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if is_popped:
                push_function_mode(self)

    @staticmethod
    def _keep_random(entry: Entry, kwargs: dict[str, Any]) -> None:
        entry.random = RandomState.take()
        generator = kwargs.get("generator")
        if isinstance(generator, torch.Generator):
            entry.generators = ((generator, generator.get_state()),)

    def _note(self, func: Any, args: Any, kwargs: Any, frame: Any, out: Any) -> None:
        self.tape.keep_products(self.begin(func, args, kwargs, frame), out)

    def _change(self, func: Any, name: str, args: Any, kwargs: Any, frame: Any) -> Any:
        """Makes a call that changes a tensor; what that held is kept where no entry could make it again."""
        tape = self.tape
        targets = list(tensors_within(kwargs["out"] if "out" in kwargs else args[:1]))
        others = [tensor for tensor in tensors_within((args[1:], kwargs)) if not _is_among(tensor, targets)]
        what = func.__self__.__name__ if name == "__set__" else name
        entry = self.begin(func, args, kwargs, frame)
        if any(part in name for part in _RANDOM):
            self._keep_random(entry, kwargs)
        entry.is_change = True
        updated = []
        self.depth += 1
        try:
            for target in targets:
                if what in ("requires_grad", "requires_grad_"):
                    tape.flags.setdefault(id(target), (target, target.requires_grad))
                elif what == "grad":
                    continue
                elif self._is_parameter(target):
                    if not self._before_update(target, others):
                        return args[0]
                    updated.append(target)
                else:
                    base = target if target._base is None else target._base
                    if not tape.is_made(base) and id(base) not in tape.originals:
                        tape.originals[id(base)] = (base, base.detach().clone())
            out = func(*args, **kwargs)
        finally:
            self.depth -= 1
        for tensor in tensors_within(out):
            if not _is_among(tensor, targets):
                tape.keep_products(entry, tensor)
        for target in updated:
            self._after_update(target)
        return out


def _step_again(reference: weakref.ref[Any]) -> None:
    optimizer = reference()
    if optimizer is not None:
        optimizer.step()


def _is_change(name: str) -> bool:
    """Whether a function's name says that it changes its first argument."""
    if name in ("__set__", "__setitem__") or (name.startswith("__i") and name.endswith("__")):
        return name not in ("__invert__", "__index__", "__int__")
    return name.endswith("_") and not name.endswith("__")


def _is_among(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    return any(tensor is other for other in tensors)


def _active_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
