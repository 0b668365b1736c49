"""Where the guard is attached to torch, and how it is taken off again."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.checkpoint
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from anomprof.guarding.fetching import FetchAgain, Fetched
from anomprof.guarding.recorder import Recorder
from anomprof.guarding.sentinel import Sentinel
from anomprof.sites import (
    CALL_IS_KNOWN,
    ENGINE_CALL,
    LOADER_FETCHER,
    LOADER_ITERATOR,
    call_of,
    innermost_function_mode,
    inside_transforms,
    is_capturing,
    let_compiler_pass,
    pop_function_mode,
    push_function_mode,
    transforms,
)
from anomprof.tracing.wrappings import Wrappings

_hooked: weakref.WeakSet[Hooks] = weakref.WeakSet()


def _rest_in_child() -> None:
    """A forked child (a data loader's worker) has inherited the guard: it lets everything pass."""
    for hooks in list(_hooked):
        hooks.rest()


os.register_at_fork(after_in_child=_rest_in_child)


class Hooks:
    """A recorder per thread, and wrapped calls that tell a sentinel what happens.

    Args:
        sentinel: Is told.
        begin: Called when the first module is called, or the engine runs for the first time: until then
            nothing is recorded.
    """

    def __init__(self, sentinel: Sentinel, begin: Callable[[], None]) -> None:
        self._sentinel = sentinel
        self._begin: Callable[[], None] | None = begin
        self._local = threading.local()
        self._recorders: list[Recorder] = []
        self._wrappings = Wrappings()
        call = self._module_call(nn.Module.__call__)
        self._wrappings.replace(nn.Module, "__call__", call)
        known = let_compiler_pass(call)
        if known is not None:
            self._wrappings.add(lambda: let_compiler_pass(known) and None)
        self._wrap_engine()
        self._wrap_functions()
        self._wrap_compile()
        self._wrap_loaders()
        self._wrap_optimizers()
        self._wrap_scaler()
        self._wrap_threads()
        _hooked.add(self)

    def start(self) -> None:
        """Records this thread from now on."""
        self._begin = None
        if getattr(self._local, "recorder", None) is None:
            self._local.recorder = self._recorder()
            push_function_mode(self._local.recorder)

    def rest(self) -> None:
        """Lets everything pass."""
        self._begin = None
        for recorder in self._recorders:
            recorder.rests = True

    def remove(self) -> None:
        """Takes the guard off."""
        self.rest()
        self._wrappings.undo()
        recorder = getattr(self._local, "recorder", None)
        if recorder is not None and innermost_function_mode() is recorder:
            pop_function_mode()
        self._local.recorder = None
        _hooked.discard(self)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lets this thread's calls pass unrecorded meanwhile."""
        recorder = getattr(self._local, "recorder", None)
        with contextlib.nullcontext() if recorder is None else recorder.paused():
            yield

    def _recorder(self) -> Recorder:
        sentinel = self._sentinel
        recorder = Recorder(
            sentinel.tracer.frames,
            sentinel.is_parameter,
            lambda parameter, others: sentinel.before_update(recorder, parameter, others),
            lambda parameter: sentinel.after_update(recorder, parameter),
            lambda entry, out: sentinel.after_doubtful(recorder, entry, out),
        )
        self._recorders.append(recorder)
        return recorder

    def _here(self) -> Recorder | None:
        """Returns who records this thread, unless a replay is running."""
        recorder: Recorder | None = getattr(self._local, "recorder", None)
        if (
            recorder is None
            and self._begin is not None
            and threading.current_thread() is threading.main_thread()
        ):
            begin, self._begin = self._begin, None
            begin()
            recorder = getattr(self._local, "recorder", None)
        if recorder is None or recorder.rests or self._sentinel.replay.is_running:
            return None
        return recorder

    def _module_call(self, original: Any) -> Any:
        here = self._here
        sentinel = self._sentinel
        local = self._local
        stands_in = CALL_IS_KNOWN and original is nn.Module._wrapped_call_impl

        @functools.wraps(original)
        def __call__(self_: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or inside_transforms():
                return original(self_, *args, **kwargs)
            recorder = getattr(local, "recorder", None)
            if recorder is not None and recorder.depth:
                return call_of(self_)(*args, **kwargs) if stands_in else original(self_, *args, **kwargs)
            recorder = here()
            if recorder is None:
                return call_of(self_)(*args, **kwargs) if stands_in else original(self_, *args, **kwargs)
            sentinel.begin_root(recorder, self_, _caller(sys._getframe(1)))
            call = call_of(self_) if stands_in else types.MethodType(original, self_)
            out = recorder.call_root(self_, call, args, kwargs, _caller(sys._getframe(1)))
            sentinel.end_root(recorder, self_, out)
            return out

        return __call__

    def _wrap_engine(self) -> None:
        owner, name = ENGINE_CALL
        original = getattr(owner, name)
        sentinel = self._sentinel

        def run_again(*args: Any, **kwargs: Any) -> Any:
            return getattr(owner, name)(*args, **kwargs)

        @functools.wraps(original)
        def run_engine(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if inside_transforms() or is_capturing():
                return original(outputs, *args, **kwargs)
            is_first = self._begin is not None  # then the trace of the start has begun to count this run
            recorder = self._here()
            if recorder is None:
                return original(outputs, *args, **kwargs)
            points = sentinel.tracer.frames.read(sys._getframe(1))
            if recorder.depth:
                if recorder.tape.entries:
                    recorder.tape.entries[-1].is_engine = True
            else:
                entry = recorder.begin(run_again, (outputs, *args), kwargs, sys._getframe(1))
                entry.is_engine = True
            with recorder.paused():
                sentinel.begin_engine(recorder, outputs, points)
                try:
                    result = original(outputs, *args, **kwargs)
                except Exception as error:
                    sentinel.fail_engine(recorder, error, points)
                    raise
                if not is_first:
                    sentinel.end_engine(points, accumulates=bool(kwargs.get("accumulate_grad", True)))
            if recorder.depth == 0:
                recorder.tape.keep_products(entry, result)
            return result

        self._wrappings.replace(owner, name, run_engine)

    def _wrap_functions(self) -> None:
        """Functions whose inside is the user's code in surroundings that cannot be recorded."""
        homes = [(torch.utils.checkpoint, "checkpoint"), *transforms()]
        homes += [(torch, name) for name in ("from_numpy", "frombuffer", "from_dlpack")]
        for owner, name in homes:
            self._wrappings.replace(owner, name, self._whole(getattr(owner, name), owner, name))
        apply = torch.autograd.Function.__dict__["apply"]
        whole = self._whole

        def apply_whole(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return whole(types.MethodType(apply.__func__, cls))(*args, **kwargs)

        functools.update_wrapper(apply_whole, apply.__func__)
        self._wrappings.replace(torch.autograd.Function, "apply", classmethod(apply_whole))

    def _whole(self, original: Any, owner: Any = None, name: str = "") -> Any:
        """Returns a function that puts its calls on the tape as one."""
        again = original if owner is None else (lambda *args, **kwargs: getattr(owner, name)(*args, **kwargs))

        def call_whole(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            recorder = self._here() if self._begin is None else None
            if recorder is None or recorder.depth:
                return original(*args, **kwargs)
            return recorder.call_whole(original, again, args, kwargs, sys._getframe(1))

        return functools.wraps(original)(call_whole)

    def _wrap_compile(self) -> None:
        original = torch.compile

        @functools.wraps(original)
        def compile_whole(model: Any = None, *args: Any, **kwargs: Any) -> Any:
            compiled = original(model, *args, **kwargs)
            if model is None:  # a decorator
                return lambda function: compile_whole(function, *args, **kwargs)
            return compiled if isinstance(compiled, nn.Module) else self._whole(compiled)

        self._wrappings.replace(torch, "compile", compile_whole)

    def _wrap_loaders(self) -> None:
        original = LOADER_ITERATOR.__next__
        sentinel = self._sentinel

        make = LOADER_FETCHER.fetch
        local = self._local

        @functools.wraps(make)
        def note(self_: Any, index: Any) -> Any:
            if self._begin is None and getattr(local, "recorder", None) is not None:
                local.fetched = Fetched(self_, index)
            return make(self_, index)

        @functools.wraps(original)
        def fetch(self_: Any) -> Any:
            recorder = self._here() if self._begin is None else None
            if recorder is None or recorder.depth:
                return original(self_)
            sentinel.tracer.steps.begin_forward()
            local.fetched = None
            with recorder.paused():
                batch = original(self_)
            workers = bool(getattr(self_, "_num_workers", 0))
            again = FetchAgain(sentinel.replay, local.fetched, from_workers=workers)
            recorder.fetched(batch, again, (batch,), sys._getframe(1))
            return batch

        self._wrappings.replace(LOADER_FETCHER, "fetch", note)
        self._wrappings.replace(LOADER_ITERATOR, "__next__", fetch)

    def _wrap_optimizers(self) -> None:
        sentinel = self._sentinel
        frames = sentinel.tracer.frames

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            recorder = self._here() if self._begin is None else None
            if recorder is None:
                return
            points = frames.read(sys._getframe(1))
            recorder.begin_step(optimizer, has_closure=len(args) > 1 or bool(kwargs))
            with recorder.paused():
                sentinel.begin_step(recorder, optimizer, points)

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            recorder = self._here() if self._begin is None else None
            if recorder is None:
                return
            with recorder.paused():
                sentinel.end_step(recorder, optimizer, frames.read(sys._getframe(1)))
            recorder.end_step(optimizer)

        made = torch.optim.Optimizer.__init__

        @functools.wraps(made)
        def make(self_: Any, *args: Any, **kwargs: Any) -> None:
            with self.paused():
                made(self_, *args, **kwargs)
            sentinel.tracer.steps.add_optimizer(self_)

        self._wrappings.replace(torch.optim.Optimizer, "__init__", make)
        self._wrappings.add(register_optimizer_step_pre_hook(before).remove)
        self._wrappings.add(register_optimizer_step_post_hook(after).remove)
        for owner in (torch.optim.Optimizer, nn.Module):
            self._wrappings.replace(owner, "zero_grad", self._zero_grad(owner.zero_grad))

    def _zero_grad(self, original: Any) -> Any:
        @functools.wraps(original)
        def zero_grad(self_: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._here() if self._begin is None else None
            if recorder is None:
                return original(self_, *args, **kwargs)
            if not recorder.stepping:
                self._sentinel.tracer.steps.clear_gradients()
            with recorder.paused():
                return original(self_, *args, **kwargs)

        return zero_grad

    def _wrap_scaler(self) -> None:
        scaler = torch.amp.GradScaler
        scale_loss, step = scaler.scale, scaler.step
        sentinel = self._sentinel
        tracer = sentinel.tracer

        @functools.wraps(scale_loss)
        def scale_and_note(self_: Any, outputs: Any) -> Any:
            if self._here() is not None and self_.is_enabled():
                tracer.scaling.is_scaled = True
            return scale_loss(self_, outputs)

        @functools.wraps(step)
        def step_and_note(self_: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = self._here()
            if recorder is None or not self_.is_enabled():
                return step(self_, optimizer, *args, **kwargs)
            before = tracer.steps.taken_by(optimizer)
            out = step(self_, optimizer, *args, **kwargs)
            was_skipped = tracer.steps.taken_by(optimizer) == before
            with recorder.paused():
                sentinel.end_scaled_step(
                    recorder, optimizer, was_skipped=was_skipped, scale=self_.get_scale()
                )
            return out

        self._wrappings.replace(scaler, "scale", scale_and_note)
        self._wrappings.replace(scaler, "step", step_and_note)

    def _wrap_threads(self) -> None:
        original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

        @functools.wraps(original)
        def bootstrap(self_: Any) -> Any:
            if not self._wrappings or self._begin is not None:
                return original(self_)
            recorder = self._local.recorder = self._recorder()
            with recorder:
                return original(self_)

        self._wrappings.replace(threading.Thread, "_bootstrap_inner", bootstrap)


def _caller(frame: Any) -> Any:
    """Returns the frame of the user's code: what watches the start of a run stands between for one call."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("anomprof."):
        frame = frame.f_back
    return frame
