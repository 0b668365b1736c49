"""Where values come in that no watched op made: data loaders, and memory that others filled."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from anomprof.sites import LOADER_ITERATOR
from anomprof.tracing import arrivals
from anomprof.tracing.tracer import Tracer
from anomprof.tracing.wrappings import Here, Private, Wrappings


def watch_loaders(wrappings: Wrappings, tracer: Tracer, here: Here) -> None:
    """Looks at every batch that a data loader delivers."""
    original = LOADER_ITERATOR.__next__

    @functools.wraps(original)
    def fetch(self_: Any) -> Any:
        watcher = here()
        if watcher is None:
            return original(self_)
        watcher.fetching += 1
        tracer.steps.begin_forward()
        points = tracer.frames.read(sys._getframe(1))
        try:
            batch = original(self_)
        finally:
            watcher.fetching -= 1
        if not tracer.rests and not watcher.fetching:
            with Private(tracer):
                workers = bool(getattr(self_, "_num_workers", 0))
                arrivals.look_at_batch(tracer, batch, points, from_workers=workers)
        return batch

    wrappings.replace(LOADER_ITERATOR, "__next__", fetch)


def watch_outside_memory(wrappings: Wrappings, tracer: Tracer, here: Here) -> None:
    """Looks at tensors made of memory that others filled."""
    for name in ("from_numpy", "frombuffer", "from_dlpack"):  # others are seen as an op
        arrive = _arrival(getattr(torch, name), f"torch.{name}", tracer, here)
        arrive.__qualname__, arrive.__module__ = name, "torch"  # under which it is pickled
        wrappings.replace(torch, name, arrive)


def _arrival(original: Any, op: str, tracer: Tracer, here: Here) -> Any:
    @functools.wraps(original)
    def arrive(*args: Any, **kwargs: Any) -> Any:
        tensor = original(*args, **kwargs)
        if here() is not None and not tracer.rests:
            frame = sys._getframe(1)
            with Private(tracer):
                arrivals.look_at_outside(tracer, tensor, frame, op)
        return tensor

    return arrive
