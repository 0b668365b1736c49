"""Where the trace is attached to torch, and how it is taken off again without a trace."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from anomprof.findings import Findings, Note
from anomprof.sites import (
    CALL_IS_KNOWN,
    ENGINE_CALL,
    LOADER_ITERATOR,
    call_of,
    is_innermost,
    keep_compiler_away,
    without_modes,
    without_overrides,
)
from anomprof.tracing import arrivals
from anomprof.tracing.backward import BackwardRun
from anomprof.tracing.calls import ModuleCall, Place
from anomprof.tracing.frames import LIBRARY, Point
from anomprof.tracing.living import living
from anomprof.tracing.tracer import Tracer
from anomprof.tracing.watcher import Watcher

_attached: weakref.WeakSet[Attachment] = weakref.WeakSet()


def _rest_in_child() -> None:
    """A forked child (a data loader's worker) has inherited the trace: it lets everything pass."""
    for attachment in list(_attached):
        attachment.tracer.rests = attachment.tracer.has_failed = True


os.register_at_fork(after_in_child=_rest_in_child)


@dataclass(slots=True)
class Stepping:
    """An optimizer whose step is running.

    Attributes:
        points: The user's frames that called it.
        is_from_library: Whether its code is a library's: then those frames are the place of all its ops.
    """

    optimizer: torch.optim.Optimizer
    points: tuple[Point, ...]
    is_from_library: bool


class Attachment:
    """The trace attached to torch: a dispatch mode per thread and a few wrapped calls.

    Wrapped are the call of a module, the autograd engine's run, the steps of optimizers and loss scalers, the
    fetching of batches, ``torch.from_numpy`` and the start of threads. :meth:`remove` puts all back.
    """

    def __init__(self, tracer_of: Callable[[tuple[Any, ...]], Tracer]) -> None:
        keep_compiler_away(
            module for name, module in list(sys.modules.items()) if name.startswith("anomprof")
        )
        self._local = threading.local()
        self._in_engine: list[Watcher] = []  # whose engine is running, the innermost last
        self._undo: list[Callable[[], None]] = []
        call = self._module_call(nn.Module.__call__)
        self.tracer = tracer_of((call.__code__,))
        self._wrap(nn.Module, "__call__", call)
        self._wrap_engine()
        self._wrap_optimizers()
        self._wrap_zero_grad()
        self._wrap_scaler()
        self._wrap_loader()
        self._wrap_arrivals()
        self._wrap_compile()
        self._wrap_threads()
        self._watcher = Watcher(self.tracer)
        self._local.watcher = self._watcher
        self._watcher.__enter__()
        _attached.add(self)

    def remove(self) -> None:
        """Takes the trace off. What was wrapped by somebody else meanwhile stays wrapped by them."""
        if not self._undo:
            return
        self.tracer.rests = True
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        if is_innermost(self._watcher):
            self._watcher.__exit__(None, None, None)
        # Otherwise a mode of the user's that is still on would be taken off; ours stays and lets all pass.
        _attached.discard(self)

    @property
    def places_noted(self) -> int:
        """How many forward ops of this thread were noted as makers of autograd nodes."""
        return len(self._watcher.sites)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lets ops pass unseen meanwhile."""
        rested, self.tracer.rests = self.tracer.rests, True
        try:
            with _private():
                yield
        finally:
            self.tracer.rests = rested or self.tracer.has_failed

    def conclude(self) -> None:
        """Draws the conclusions that only the end of a run allows."""
        with self.paused():
            self.tracer.finish()

    def result(self, facts: Mapping[str, Any], troubles: Iterable[Note]) -> Findings:
        """Returns what was found so far, with what could not be looked at."""
        tracer = self.tracer
        unseen = [f"{count} results: {what}" for what, count in tracer.looks.failed.items()]
        notes = (*tracer.ledger.notes, *troubles)
        return Findings(tracer.steps.count(), tracer.ledger.findings, notes, {**facts, "not_watched": unseen})

    def explain(self, error: BaseException) -> None:
        """Looks for the reason of an error that ended the training."""
        with self.paused():
            self.tracer.stop(error)

    def _here(self) -> Watcher | None:
        watcher: Watcher | None = getattr(self._local, "watcher", None)
        if watcher is None and self._in_engine:  # a thread of the engine's own, on behalf of who started it
            return self._in_engine[-1]
        return watcher

    def _wrap(self, owner: Any, name: str, replacement: Any) -> None:
        original = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        setattr(owner, name, replacement)

        def undo() -> None:
            now = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
            if now is replacement:
                setattr(owner, name, original)

        self._undo.append(undo)

    def _module_call(self, original: Any) -> Any:
        local, in_engine = self._local, self._in_engine
        # Then the stack is as deep as without us: what counts frames finds what it looks for.
        stands_in = CALL_IS_KNOWN and original is nn.Module._wrapped_call_impl

        @functools.wraps(original)
        def __call__(self_: nn.Module, *args: Any, **kwargs: Any) -> Any:
            watcher: Watcher | None = getattr(local, "watcher", None)
            if watcher is None and in_engine:
                watcher = in_engine[-1]
            if watcher is None:
                return original(self_, *args, **kwargs)
            tracer = watcher.tracer
            parent = watcher.call
            call = ModuleCall(tracer.references.of(self_), parent, tracer.frames.read(sys._getframe(1)))
            if parent is None:
                try:
                    with _private():
                        tracer.enter_root(watcher, self_, (args, kwargs), call)
                except Exception as error:  # the user's training must go on
                    tracer.give_up(error)
            watcher.call = call
            try:
                out = call_of(self_)(*args, **kwargs) if stands_in else original(self_, *args, **kwargs)
            finally:
                watcher.call = parent
            if parent is None and (tracer.marks.by_key or tracer.pending):
                try:
                    with _private():
                        tracer.leave_root(watcher, self_, out)
                except Exception as error:  # the user's training must go on
                    tracer.give_up(error)
            return out

        return __call__

    def _wrap_engine(self) -> None:
        owner, name = ENGINE_CALL
        original = getattr(owner, name)

        @functools.wraps(original)
        def run_engine(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            watcher = self._here()
            if watcher is None:
                return original(outputs, *args, **kwargs)
            tracer = watcher.tracer
            accumulates = bool(kwargs.get("accumulate_grad", True))
            inputs = args[3] if len(args) > 3 else None
            place = Place(tracer.frames.read(sys._getframe(1)), watcher.call)
            with without_overrides():
                roots = tuple(getattr(out, "grad_fn", None) for out in outputs)
            run = BackwardRun(place, roots, accumulates)
            watcher.runs.append(run)
            self._in_engine.append(watcher)
            call, watcher.call = watcher.call, None
            try:
                with _private():
                    tracer.begin_backward(watcher, run, outputs)
            except Exception as error:  # the user's training must go on
                tracer.give_up(error)
            failure: Exception | None = None
            result = None
            try:
                result = original(outputs, *args, **kwargs)
            except Exception as error:
                failure = error
                raise
            finally:
                watcher.runs.pop()
                self._in_engine.remove(watcher)
                watcher.call = call
                try:
                    with _private():
                        if failure is None:
                            tracer.end_backward(watcher, run, result, inputs)
                        else:
                            tracer.fail_backward(watcher, run, failure)
                except Exception as own:  # the user's training must go on
                    tracer.give_up(own)
            return result

        self._wrap(owner, name, run_engine)

    def _wrap_optimizers(self) -> None:
        def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            watcher = self._here()
            if watcher is None:
                return
            tracer = watcher.tracer
            points = tracer.frames.read(sys._getframe(1))
            code = getattr(_unwrapped(type(optimizer).step), "__code__", None)
            is_library = code is not None and tracer.frames.kind(code) == LIBRARY
            # An earlier step of the same optimizer that raised was never taken off.
            watcher.stepping = [step for step in watcher.stepping if step.optimizer is not optimizer]
            watcher.stepping.append(Stepping(optimizer, points, is_library))
            if not tracer.steps.gap:
                tracer.steps.gap = "backward"

        def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            watcher = self._here()
            if watcher is None or not watcher.stepping:
                return
            stepping = watcher.stepping.pop()
            try:
                watcher.sites.begin_step(watcher.number)
                with _private():
                    watcher.tracer.end_step(optimizer)
                if stepping.points:
                    number = watcher.tracer.steps.number_of(optimizer)
                    watcher.tracer.narrator.step_lines[number] = stepping.points[0]
            except Exception as error:  # the user's training must go on
                watcher.tracer.give_up(error)

        original = torch.optim.Optimizer.__init__

        @functools.wraps(original)
        def made(self_: Any, *args: Any, **kwargs: Any) -> None:
            original(self_, *args, **kwargs)
            self.tracer.steps.add_optimizer(self_)

        self._wrap(torch.optim.Optimizer, "__init__", made)
        for optimizer in living(torch.optim.Optimizer):
            self.tracer.steps.add_optimizer(optimizer, is_older=True)
        self._undo.append(register_optimizer_step_pre_hook(before).remove)
        self._undo.append(register_optimizer_step_post_hook(after).remove)

    def _wrap_zero_grad(self) -> None:
        for owner in (torch.optim.Optimizer, nn.Module):
            self._wrap(owner, "zero_grad", self._zero_grad(owner.zero_grad))

    def _zero_grad(self, original: Any) -> Any:
        @functools.wraps(original)
        def zero_grad(self_: Any, *args: Any, **kwargs: Any) -> Any:
            watcher = self._here()
            if watcher is not None and not watcher.stepping:
                watcher.tracer.steps.clear_gradients()
            return original(self_, *args, **kwargs)

        return zero_grad

    def _wrap_scaler(self) -> None:
        scaler = torch.amp.GradScaler
        scale_loss, step = scaler.scale, scaler.step

        @functools.wraps(scale_loss)
        def scale_and_note(self_: Any, outputs: Any) -> Any:
            if (watcher := self._here()) is not None and self_.is_enabled():
                watcher.tracer.scaling.is_scaled = True
            return scale_loss(self_, outputs)

        @functools.wraps(step)
        def step_and_note(self_: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            watcher = self._here()
            if watcher is None or not self_.is_enabled():
                return step(self_, optimizer, *args, **kwargs)
            before = watcher.tracer.steps.taken_by(optimizer)
            out = step(self_, optimizer, *args, **kwargs)
            was_skipped = watcher.tracer.steps.taken_by(optimizer) == before
            try:
                with _private():
                    scale = self_.get_scale()
                    watcher.tracer.end_scaled_step(optimizer, was_skipped=was_skipped, scale=scale)
            except Exception as error:  # the user's training must go on
                watcher.tracer.give_up(error)
            return out

        self._wrap(scaler, "scale", scale_and_note)
        self._wrap(scaler, "step", step_and_note)

    def _wrap_loader(self) -> None:
        original = LOADER_ITERATOR.__next__

        @functools.wraps(original)
        def fetch(self_: Any) -> Any:
            watcher = self._here()
            if watcher is None:
                return original(self_)
            tracer = watcher.tracer
            watcher.fetching += 1
            tracer.steps.begin_forward()
            points = tracer.frames.read(sys._getframe(1))
            try:
                batch = original(self_)
            finally:
                watcher.fetching -= 1
            try:
                if not tracer.rests and not watcher.fetching:
                    with _private():
                        workers = bool(getattr(self_, "_num_workers", 0))
                        arrivals.look_at_batch(tracer, batch, points, from_workers=workers)
            except Exception as error:  # the user's training must go on
                tracer.give_up(error)
            return batch

        self._wrap(LOADER_ITERATOR, "__next__", fetch)

    def _wrap_arrivals(self) -> None:
        for name in ("from_numpy", "frombuffer", "from_dlpack"):  # others are seen as an op
            arrive = self._arrival(getattr(torch, name), f"torch.{name}")
            arrive.__qualname__, arrive.__module__ = name, "torch"  # under which it is pickled
            self._wrap(torch, name, arrive)

    def _arrival(self, original: Any, op: str) -> Any:
        @functools.wraps(original)
        def arrive(*args: Any, **kwargs: Any) -> Any:
            tensor = original(*args, **kwargs)
            watcher = self._here()
            if watcher is not None and not watcher.tracer.rests:
                try:
                    with _private():
                        arrivals.look_at_outside(watcher.tracer, tensor, sys._getframe(1), op)
                except Exception as error:  # the user's training must go on
                    watcher.tracer.give_up(error)
            return tensor

        return arrive

    def _wrap_compile(self) -> None:
        original = torch.compile

        @functools.wraps(original)
        def compile_and_note(*args: Any, **kwargs: Any) -> Any:
            self.tracer.ledger.note(
                "torch.compile is off while the trace watches: compiled parts ran op by op, with rounding "
                "and random numbers (dropout) of their own",
                None,
            )
            kwargs.pop("fullgraph", None)  # it would raise, since nothing is compiled
            return original(*args, **kwargs)

        self._wrap(torch, "compile", compile_and_note)

    def _wrap_threads(self) -> None:
        original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        @functools.wraps(original)
        def bootstrap(self_: Any) -> Any:
            if self.tracer.has_failed or not self._undo:
                return original(self_)
            watcher = self._local.watcher = Watcher(self.tracer)
            with watcher:
                return original(self_)

        self._wrap(threading.Thread, "_bootstrap_inner", bootstrap)


@contextlib.contextmanager
def _private() -> Iterator[None]:
    """What we do with tensors outside of ops passes through nobody's modes."""
    with without_modes(), without_overrides():
        yield


def _unwrapped(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
