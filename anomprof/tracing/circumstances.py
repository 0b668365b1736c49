"""Under which circumstances an op made something bad: phase, place, operands and owners, as an event."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from anomprof.sites import current_node, op_name
from anomprof.tracing.calls import NOWHERE, Place
from anomprof.tracing.contents import Contents, tensors_in
from anomprof.tracing.events import Event, Marks, NodeSite
from anomprof.tracing.explanation import Operand, is_additive_mask
from anomprof.tracing.frames import FrameReader
from anomprof.tracing.looks import Looks, is_number
from anomprof.tracing.ops import OpKind
from anomprof.tracing.stakes import Stakes
from anomprof.tracing.steps import Steps

if TYPE_CHECKING:
    from anomprof.tracing.watcher import Watcher

_MOST_INPUTS, _MOST_OUTPUTS, _MOST_OWNERS = 6, 4, 8  # kept per event
_ARRIVALS = ("aten::set_", "aten::lift_fresh")  # ops by which values come from outside torch
_COMPILED_CALL = "compile_wrapper"  # the function of torch.compile that calls what was compiled


class Circumstances:
    """Makes events.

    Args:
        frames: Reads the user's lines.
        steps: Know how far the training is.
        stakes: Know the parameters and the state of optimizers.
        looks: Count what tensors hold.
        marks: Know what is bad already.
    """

    def __init__(self, frames: FrameReader, steps: Steps, stakes: Stakes, looks: Looks, marks: Marks) -> None:
        self._frames = frames
        self._steps = steps
        self._stakes = stakes
        self._looks = looks
        self._marks = marks
        self._order = 0

    def operands(
        self, kind: OpKind, args: Any, kwargs: dict[str, Any], written: list[torch.Tensor]
    ) -> list[Operand]:
        """Returns what an op was given, as far as it can be bad."""
        operands: list[Operand] = []
        for tensor in tensors_in((args, kwargs)):
            if not is_number(tensor):
                continue
            is_written = is_among(tensor, written)
            if is_written and kind.overwrites:
                continue
            held = None if is_written else self._looks.thorough(tensor)
            operands.append((tensor, held, self._marks.of(tensor)))
        return operands

    def event(
        self,
        watcher: Watcher,
        kind: OpKind,
        operands: list[Operand],
        bad: list[tuple[torch.Tensor, Contents]],
        written: list[torch.Tensor],
        frame: Any,
    ) -> Event:
        """Returns the event of an op whose results are bad; nothing explains it yet."""
        phase = self._phase(watcher, kind, operands, written)
        nan, inf = any(held.nan for _, held in bad), any(held.inf for _, held in bad)
        event = self._bare_event(phase, kind.name, NOWHERE, nan, inf)
        if phase == "backward":
            self._place_in_backward(event, watcher, frame)
        else:
            event.place = Place(self._frames.read(frame), watcher.call)
            event.is_compiled = _is_compiled(frame)
        event.outputs = tuple(held for _, held in bad[:_MOST_OUTPUTS])
        event.inputs = tuple(held for _, held, _ in operands[:_MOST_INPUTS] if held is not None)
        event.is_uninitialised = kind.is_uninitialised
        if phase == "optimizer":
            owners = [parameter for t, _ in bad if (parameter := self._stakes.owner(t)) is not None]
            event.owners = tuple(weakref.ref(owner) for owner in owners[:_MOST_OWNERS])
            if not owners and watcher.stepping:
                event.owners = self._stakes.state_owners(watcher.stepping[-1].optimizer, [t for t, _ in bad])
        return event

    def outside(
        self,
        tensor: torch.Tensor,
        held: Contents,
        place: Place,
        op: str,
        message: str = "",
        phase: str = "input",
    ) -> Event:
        """Makes the event of a bad value that comes from outside, and marks its memory."""
        event = self._bare_event(phase, op, place, held.nan > 0, held.inf > 0)
        event.outputs = (held,)
        event.is_outside, event.message = True, message
        event.is_literal = not held.nan and not held.plus_inf and is_additive_mask(tensor)
        event.origins = (event,)
        self._marks.add(tensor, event, nan=held.nan > 0, inf=held.inf > 0)
        return event

    def _place_in_backward(self, event: Event, watcher: Watcher, frame: Any) -> None:
        has_python, points = self._frames.read_in_engine(frame)
        running = current_node()
        node: NodeSite | None = watcher.sites.node_site(running, op_name) if running is not None else None
        event.node = node
        started = watcher.runs[0].place if watcher.runs else NOWHERE
        if points:
            event.from_python, event.place = True, Place(points, watcher.call)
        elif node is not None and node.place is not None:
            event.place = node.place
        else:
            # A hook that a library has set, or a node that no forward op made: the line that ran backward.
            event.from_python = event.in_library = has_python
            event.place = Place(started.points, None)

    def _bare_event(self, phase: str, op: str, place: Place, nan: bool, inf: bool) -> Event:
        self._order += 1
        return Event(self._order, self._steps.now(), phase, op, place, nan, inf)

    def _phase(
        self, watcher: Watcher, kind: OpKind, operands: list[Operand], written: list[torch.Tensor]
    ) -> str:
        if watcher.is_in_backward:
            return "backward"
        if watcher.fetching or (not operands and kind.name in _ARRIVALS):
            return "input"
        gap = self._steps.gap
        if not gap or watcher.call is not None:
            return "forward"
        if torch.is_grad_enabled() and not written and any(tensor.requires_grad for tensor, _, _ in operands):
            return "forward"
        touched = [tensor for tensor, _, _ in operands] + written
        if gap == "step" and not watcher.stepping and not self._stakes.touches(touched):
            return "forward"
        return "optimizer"


def is_among(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    """Whether a tensor is one of several; ``in`` would compare their elements."""
    return any(tensor is other for other in tensors)


def _is_compiled(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_name == _COMPILED_CALL:
            return True
        frame = frame.f_back
    return False
