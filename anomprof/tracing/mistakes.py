"""Errors that autograd raises: which line made the change it objects to, which needed the old value."""

from __future__ import annotations

import math
import re
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from anomprof.findings import Finding, Frame, Link
from anomprof.sites import op_name
from anomprof.tracing.backward import BackwardRun, nodes_below
from anomprof.tracing.calls import Place, parameter_name
from anomprof.tracing.frames import USER, Point
from anomprof.tracing.ops import OpKind
from anomprof.tracing.steps import Moment

if TYPE_CHECKING:
    from anomprof.tracing.tracer import Tracer
    from anomprof.tracing.watcher import Watcher

_MOST_WRITES = 20_000

# What the messages of torch say.
_CHANGED = "modified by an inplace operation"
_FREED = "backward through the graph a second time"
_SAVED_IS_FREED = "after they have already been freed"
_FORBIDDEN = ("leaf Variable that requires grad", "is a view and is being modified inplace")
_VERSIONS = re.compile(r"\[[\w.]+ \[([\d, ]*)\]\].* is at version (\d+); expected version (\d+)", re.DOTALL)

#: How libraries and scripts speak of values that are not finite.
_BAD_VALUES = re.compile(r"\b(nans?|infs?|infinit\w*|(non-?)?finite|constraint|diverge\w*)\b", re.IGNORECASE)

#: What a line of source that changes a tensor in place looks like.
_IN_PLACE_CALL = re.compile(r"\.(\w+_)\(")
_OPERATORS = {"**=": "pow_", "//=": "floor_divide_", "+=": "add_", "-=": "sub_", "*=": "mul_", "/=": "div_"}


class Write(NamedTuple):
    """One in-place write.

    Attributes:
        version: Of the tensor after it; counts its writes.
        shape: The tensor's.
        whole: The shape of the tensor that it is a view of, its own where it is none.
    """

    version: int
    shape: torch.Size
    whole: torch.Size
    op: str
    points: tuple[Point, ...]
    call: Any
    phase: str
    moment: Moment
    tensor: weakref.ref[torch.Tensor]


class Writes:
    """The last in-place writes of a run: autograd may object to one of them later."""

    def __init__(self) -> None:
        self._kept: deque[Write] = deque(maxlen=_MOST_WRITES)

    def add(self, watcher: Watcher, kind: OpKind, args: Any, kwargs: Any, frame: Any) -> None:
        """An op has written some of its operands."""
        tracer, step = watcher.tracer, watcher.stepping[-1] if watcher.stepping else None
        # A closure computes with gradients; what else runs below a library's step is the step's own.
        is_its_own = step is not None and step.is_from_library and not torch.is_grad_enabled()
        points = step.points if step is not None and is_its_own else tracer.frames.read(frame)
        is_update = bool(step) or (tracer.steps.gap != "" and not torch.is_grad_enabled())
        phase = "backward" if watcher.runs else "optimizer" if is_update else "forward"
        moment = tracer.steps.now()
        for tensor in kind.written(args, kwargs or {}):
            if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
                version = tensor._version + 1  # it is counted up after the op
                whole = tensor.shape if tensor._base is None else tensor._base.shape
                what = (version, tensor.shape, whole, kind.name, points, watcher.call)
                self._kept.append(Write(*what, phase, moment, weakref.ref(tensor)))

    def after(self, version: int) -> list[Write]:
        """Returns the first writes to tensors that were at a version before, the last one last."""
        return [write for write in self._kept if write.version == version + 1]


class Reader(NamedTuple):
    """The node that needs a value which is gone, and the forward line that made it."""

    node: str
    op: str
    module: str
    frames: tuple[Frame, ...]
    function: str

    def link(self, what: str) -> tuple[Link, ...]:
        """Returns it as a link of a chain; nothing where its line is not known."""
        return (_link(self.op, "forward", self.module, self.frames[0], what),) if self.frames else ()


def explain(tracer: Tracer, watcher: Watcher, run: BackwardRun, text: str) -> Finding | None:
    """Returns the finding of an error that the engine raised, None where it is none of the known kinds."""
    if _CHANGED in text:
        return _changed(tracer, watcher, run, text)
    if _FREED in text:
        reader = _reader(tracer, watcher, run, (_SAVED_IS_FREED, "a second time"))
        frames = tuple(tracer.narrator.frames(run.place))
        chain = reader.link("made the graph") if reader else ()
        op, node = (reader.op, reader.node) if reader else ("", None)
        return tracer.narrator.error("backward", tracer.steps.now(), op, node, "", frames, chain, text)
    return None


def explain_raised(tracer: Tracer, error: BaseException) -> Finding | None:
    """Returns the finding of an error that an op raised before it ran: a forbidden change in place."""
    text = str(error)
    if not isinstance(error, RuntimeError) or not any(words in text for words in _FORBIDDEN):
        return None
    point = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if tracer.frames.kind(code) == USER:
            point = (code, trace.tb_lasti)
        trace = trace.tb_next
    if point is None:
        return None
    here = tracer.narrator.frame(point)
    phase = "optimizer" if tracer.steps.gap else "forward"
    return tracer.narrator.error(
        phase, tracer.steps.now(), f"aten::{_op_in(here.code)}", None, "", (here,), (), text
    )


def is_about_bad_values(error: BaseException) -> bool:
    """Whether an error that ended a script may be its answer to NaN or Inf."""
    return isinstance(error, AssertionError) or bool(_BAD_VALUES.search(str(error)))


def _changed(tracer: Tracer, watcher: Watcher, run: BackwardRun, text: str) -> Finding | None:
    reader = _reader(tracer, watcher, run, (_CHANGED,))
    write = _writer(tracer, text)
    if write is None:
        if reader is None:
            return None
        moment = tracer.steps.now()
        return tracer.narrator.error(
            "backward", moment, reader.op, reader.node, reader.module, reader.frames, (), text
        )
    place = Place(write.points, write.call)
    frames = tuple(tracer.narrator.frames(place))
    if write.phase == "optimizer" and reader is not None and reader.function == "forward" and frames:
        # A step is meant to write. What is wrong is that a graph, made in a forward of its own, is used again
        # after the step; where both are lines of one loop, it is their order, and the step is named.
        chain = (_link(write.op, write.phase, "", frames[0], "changed it"),)
        return tracer.narrator.error(
            "backward",
            write.moment,
            reader.op,
            reader.node,
            reader.module,
            reader.frames,
            chain,
            text,
        )
    needs: tuple[Link, ...] = reader.link("needs the old value") if reader else ()
    node = reader.node if reader else None
    module = _module_written(tracer, write, place)
    return tracer.narrator.error(write.phase, write.moment, write.op, node, module, frames, needs, text)


def _module_written(tracer: Tracer, write: Write, place: Place) -> str:
    tensor = write.tensor()
    if write.phase == "optimizer" and tensor is not None:
        return parameter_name(tensor)[1]
    module = place.module()
    return "" if module is None else tracer.narrator.module_name(module)


def _reader(tracer: Tracer, watcher: Watcher, run: BackwardRun, words: tuple[str, ...]) -> Reader | None:
    """Returns the node whose saved tensor cannot be had: asking for it raises what the engine raised."""
    for node in nodes_below(run.roots):
        for name in dir(node):
            if not name.startswith("_saved_"):
                continue
            try:
                getattr(node, name)
            except RuntimeError as error:
                if any(word in str(error) for word in words):
                    site = watcher.sites.node_site(node, op_name)
                    if site.place is None:
                        return Reader(site.name, site.name, "", (), "")
                    module = site.place.module()
                    points = site.place.all_points()
                    return Reader(
                        site.name,
                        site.op,
                        "" if module is None else tracer.narrator.module_name(module),
                        tuple(tracer.narrator.frames(site.place)),
                        points[0][0].co_name if points else "",
                    )
    return None


def _writer(tracer: Tracer, text: str) -> Write | None:
    """Returns the first write after the version that autograd saved."""
    found = _VERSIONS.search(text)
    if found is None:
        return None
    shape = tuple(int(size) for size in found.group(1).split(",") if size.strip())
    fitting = tracer.writes.after(int(found.group(3)))
    # What the engine itself writes are temporaries of its own, most of the time.
    for writes in ([write for write in fitting if write.phase != "backward"], fitting):
        for candidates in (
            [write for write in writes if tuple(write.shape) == shape],
            [write for write in writes if tuple(write.whole) == shape],
            [write for write in writes if write.shape.numel() == math.prod(shape)],  # a transposed view
            writes,
        ):
            if candidates:
                return candidates[-1]
    return None


def _op_in(code: str) -> str:
    for operator, name in _OPERATORS.items():
        if operator in code:
            return name
    found = _IN_PLACE_CALL.search(code)
    return found.group(1) if found else "copy_"  # an assignment to an element or a slice


def _link(op: str, phase: str, module: str, frame: Frame, what: str) -> Link:
    return Link(op, phase, module, frame.file, frame.line, frame.code, what)
