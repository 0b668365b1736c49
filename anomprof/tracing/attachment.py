"""Where the trace is attached to torch, and how it is taken off again without a trace."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from anomprof.findings import Findings, Note
from anomprof.sites import (
    CALL_IS_KNOWN,
    ENGINE_CALL,
    call_of,
    is_innermost,
    keep_compiler_away,
    without_modes,
    without_overrides,
)
from anomprof.tracing import inlets, stepping
from anomprof.tracing.backward import BackwardRun
from anomprof.tracing.calls import ModuleCall, Place
from anomprof.tracing.tracer import Tracer
from anomprof.tracing.watcher import Watcher
from anomprof.tracing.wrappings import Private, Wrappings

_attached: weakref.WeakSet[Attachment] = weakref.WeakSet()


def _rest_in_child() -> None:
    """A forked child (a data loader's worker) has inherited the trace: it lets everything pass."""
    for attachment in list(_attached):
        attachment.tracer.rests = attachment.tracer.has_failed = True


os.register_at_fork(after_in_child=_rest_in_child)


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
        self._wrappings = Wrappings()
        call = self._module_call(nn.Module.__call__)
        self.tracer = tracer_of((call.__code__,))
        self._wrappings.replace(nn.Module, "__call__", call)
        self._wrap_engine()
        self._wrap_compile()
        self._wrap_threads()
        for watch in (
            stepping.watch_optimizers,
            stepping.watch_clearing,
            stepping.watch_scaler,
            inlets.watch_loaders,
            inlets.watch_outside_memory,
        ):
            watch(self._wrappings, self.tracer, self._here)
        self._watcher = Watcher(self.tracer)
        self._local.watcher = self._watcher
        self._watcher.__enter__()
        _attached.add(self)

    @classmethod
    def of(cls, tracer: Tracer) -> Attachment:
        """Attaches a trace that goes on with what a tracer knows already."""

        def known(boundaries: tuple[Any, ...]) -> Tracer:
            for code in boundaries:
                tracer.frames.stop_at(code)
            return tracer

        return cls(known)

    def remove(self) -> None:
        """Takes the trace off."""
        if not self._wrappings:
            return
        self.tracer.rests = True
        self._wrappings.undo()
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
            with without_modes(), without_overrides():
                yield
        finally:
            self.tracer.rests = rested or self.tracer.has_failed

    @contextlib.contextmanager
    def fetching(self) -> Iterator[None]:
        """Takes what runs meanwhile for the fetching of a batch."""
        self._watcher.fetching += 1
        try:
            yield
        finally:
            self._watcher.fetching -= 1

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
                with Private(tracer):
                    tracer.enter_root(watcher, self_, (args, kwargs), call)
            watcher.call = call
            try:
                out = call_of(self_)(*args, **kwargs) if stands_in else original(self_, *args, **kwargs)
            finally:
                watcher.call = parent
            if parent is None and (tracer.marks.by_key or tracer.pending):
                with Private(tracer):
                    tracer.leave_root(watcher, self_, out)
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
            with Private(tracer):
                tracer.begin_backward(watcher, run, outputs)
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
                with Private(tracer):
                    if failure is None:
                        tracer.end_backward(watcher, run, result, inputs)
                    else:
                        tracer.fail_backward(watcher, run, failure)
            return result

        self._wrappings.replace(owner, name, run_engine)

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

        self._wrappings.replace(torch, "compile", compile_and_note)

    def _wrap_threads(self) -> None:
        original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        @functools.wraps(original)
        def bootstrap(self_: Any) -> Any:
            if self.tracer.has_failed or not self._wrappings:
                return original(self_)
            watcher = self._local.watcher = Watcher(self.tracer)
            with watcher:
                return original(self_)

        self._wrappings.replace(threading.Thread, "_bootstrap_inner", bootstrap)
