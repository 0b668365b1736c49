"""When optimizers and loss scalers step, and when gradients are cleared."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from anomprof.tracing.frames import LIBRARY, Point
from anomprof.tracing.living import living
from anomprof.tracing.tracer import Tracer
from anomprof.tracing.wrappings import Here, Private, Wrappings


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


def watch_optimizers(wrappings: Wrappings, tracer: Tracer, here: Here) -> None:
    """Follows every optimizer's steps, from those that are alive already."""

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watcher = here()
        if watcher is None:
            return
        points = tracer.frames.read(sys._getframe(1))
        code = getattr(_unwrapped(type(optimizer).step), "__code__", None)
        is_library = code is not None and tracer.frames.kind(code) == LIBRARY
        # An earlier step of the same optimizer that raised was never taken off.
        watcher.stepping = [step for step in watcher.stepping if step.optimizer is not optimizer]
        watcher.stepping.append(Stepping(optimizer, points, is_library))
        if not tracer.steps.gap:
            tracer.steps.gap = "backward"

    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watcher = here()
        if watcher is None or not watcher.stepping:
            return
        stepping = watcher.stepping.pop()
        watcher.sites.begin_step(watcher.number)
        with Private(tracer):
            tracer.end_step(optimizer)
            if stepping.points:
                tracer.narrator.step_lines[tracer.steps.number_of(optimizer)] = stepping.points[0]

    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def made(self_: Any, *args: Any, **kwargs: Any) -> None:
        original(self_, *args, **kwargs)
        tracer.steps.add_optimizer(self_)

    wrappings.replace(torch.optim.Optimizer, "__init__", made)
    for optimizer in living(torch.optim.Optimizer):
        tracer.steps.add_optimizer(optimizer, is_older=True)
    wrappings.add(register_optimizer_step_pre_hook(before).remove)
    wrappings.add(register_optimizer_step_post_hook(after).remove)


def watch_clearing(wrappings: Wrappings, tracer: Tracer, here: Here) -> None:
    """Notes when gradients are cleared."""
    for owner in (torch.optim.Optimizer, nn.Module):
        wrappings.replace(owner, "zero_grad", _zero_grad(owner.zero_grad, tracer, here))


def _zero_grad(original: Any, tracer: Tracer, here: Here) -> Any:
    @functools.wraps(original)
    def zero_grad(self_: Any, *args: Any, **kwargs: Any) -> Any:
        watcher = here()
        if watcher is not None and not watcher.stepping:
            tracer.steps.clear_gradients()
        return original(self_, *args, **kwargs)

    return zero_grad


def watch_scaler(wrappings: Wrappings, tracer: Tracer, here: Here) -> None:
    """Follows loss scaling: what is scaled, and which steps it skips."""
    scaler = torch.amp.GradScaler
    scale_loss, step = scaler.scale, scaler.step

    @functools.wraps(scale_loss)
    def scale_and_note(self_: Any, outputs: Any) -> Any:
        if here() is not None and self_.is_enabled():
            tracer.scaling.is_scaled = True
        return scale_loss(self_, outputs)

    @functools.wraps(step)
    def step_and_note(self_: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if here() is None or not self_.is_enabled():
            return step(self_, optimizer, *args, **kwargs)
        before = tracer.steps.taken_by(optimizer)
        out = step(self_, optimizer, *args, **kwargs)
        was_skipped = tracer.steps.taken_by(optimizer) == before
        with Private(tracer):
            tracer.end_scaled_step(optimizer, was_skipped=was_skipped, scale=self_.get_scale())
        return out

    wrappings.replace(scaler, "scale", scale_and_note)
    wrappings.replace(scaler, "step", step_and_note)


def _unwrapped(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
