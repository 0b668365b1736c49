"""Values that arrive from outside: what a model holds before its first step, samples of a batch."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from anomprof.sites import without_overrides
from anomprof.tracing.calls import ModuleCall, Place
from anomprof.tracing.contents import Contents, tensors_in
from anomprof.tracing.events import Event
from anomprof.tracing.frames import Point
from anomprof.tracing.looks import is_number
from anomprof.tracing.sight import Seen
from anomprof.tracing.symptom import Symptom

if TYPE_CHECKING:
    from anomprof.tracing.tracer import Tracer

_READ_FROM_FILE = "aten::set_"
_MOST_ROWS = 100_000


def look_at_state(tracer: Tracer, module: nn.Module, call: ModuleCall) -> None:
    """Looks at parameters and buffers before a model is called for the first time."""
    for tensor in [*nn.Module.parameters(module), *nn.Module.buffers(module)]:
        seen = tracer.see(tensor)
        held = seen.if_bad
        is_buffer = not isinstance(tensor, nn.Parameter)
        if held is None or (is_buffer and not held.nan):  # buffers of Inf are masks and starts of minima
            continue
        mark = tracer.marks.of(seen)
        event = mark.event(held.nan > 0) if mark is not None else None
        if event is None:
            place = Place(call.points, None)
            event = tracer.circumstances.outside(seen, held, place, "parameter", phase="parameter")
        if event.is_all_literal or (is_buffer and event.origins[0].is_uninitialised):
            continue
        if not tracer.steps.has_begun:
            _blame(event, tensor)
        tracer.harm(event, Symptom.of("buffer" if is_buffer else "parameter", tensor))


def look_at_inputs(tracer: Tracer, inputs: Any, call: ModuleCall) -> None:
    """A model that no other module called is given something."""
    for tensor in tensors_in(inputs):
        if is_number(tensor) and not tensor.requires_grad:
            seen = tracer.given(tensor)
            tracer.when_read(functools.partial(_arrive_if_new, tracer, seen, call.points, "input", "sample"))


def look_at_batch(tracer: Tracer, batch: Any, points: tuple[Point, ...], *, from_workers: bool) -> None:
    """A data loader has delivered a batch; what its workers made was not seen before."""
    for tensor in tensors_in(batch):
        if is_number(tensor):
            look = functools.partial(_look_at_part, tracer, tracer.given(tensor), points)
            tracer.when_read(functools.partial(look, from_workers=from_workers))


def look_at_outside(tracer: Tracer, tensor: torch.Tensor, frame: Any, op: str) -> None:
    """A tensor was made of memory that is not torch's."""
    if is_number(tensor):
        points = tracer.frames.read(frame)
        tracer.when_read(functools.partial(_arrive_if_new, tracer, tracer.given(tensor), points, op, "row"))


def _look_at_part(tracer: Tracer, seen: Seen, points: tuple[Point, ...], *, from_workers: bool) -> None:
    if (held := seen.if_bad) is None:
        return
    mark = tracer.marks.of(seen)
    event = mark.event(held.nan > 0) if mark is not None and not from_workers else None
    if event is None:
        _arrive(tracer, seen, held, points, "DataLoader", "sample")
    else:
        for origin in event.origins:
            origin.message = bad_rows(seen.live, "sample")  # of the batch, not of what the line was given


def _arrive_if_new(tracer: Tracer, seen: Seen, points: tuple[Point, ...], op: str, row: str) -> None:
    if tracer.marks.of(seen) is None and (held := seen.if_bad) is not None:
        _arrive(tracer, seen, held, points, op, row)


def _arrive(tracer: Tracer, seen: Seen, held: Contents, points: tuple[Point, ...], op: str, row: str) -> None:
    message = bad_rows(seen.live, row)
    event = tracer.circumstances.outside(seen, held, Place(points, None), op, message)
    if not event.is_literal:
        tracer.ledger.doubt(event)


def bad_rows(tensor: torch.Tensor | None, what: str) -> str:
    """Says which rows of data are bad; "" for a single number, and for data that is gone.

    Args:
        tensor: The data, its rows along the first dimension.
        what: What a row is: "sample".
    """
    if tensor is None or tensor.dim() < 1 or not 0 < tensor.shape[0] <= _MOST_ROWS:
        return ""
    with without_overrides():
        bad = ~torch.isfinite(tensor)
        rows = bad.reshape(tensor.shape[0], -1).any(dim=1).nonzero().flatten().tolist()
    shown = ", ".join(str(row) for row in rows[:8]) + (", ..." if len(rows) > 8 else "")
    what = what if len(rows) == 1 else f"{what}s"
    return f"Bad: {what} {shown} of {tensor.shape[0]} (counted from 0)."


def _blame(event: Event, parameter: torch.Tensor) -> None:
    """Names, for a parameter that is bad from the start, what brought the value there."""
    origin = event.origins[0]
    origin.phase = "parameter"
    origin.owners = (weakref.ref(parameter),)
    if origin is not event and (origin.is_outside or origin.op == _READ_FROM_FILE):
        # The file holds many tensors; the copy into this one says which it was.
        event.phase, event.owners, event.origins = "parameter", (weakref.ref(parameter),), (event,)
