"""What was going on when an op ran: where, for whom, how far the training was."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from anomprof.sites import ENGINE_CODE, current_node, op_name
from anomprof.tracing.calls import NOWHERE, Place
from anomprof.tracing.events import NodeSite

if TYPE_CHECKING:
    from anomprof.tracing.watcher import Watcher

_COMPILED_CALL = "compile_wrapper"  # the function of torch.compile that calls what was compiled


class Scene:
    """The scene of one op; the lines and the node are read when :meth:`locate` is called.

    Attributes:
        call: The module call that was running.
        run: The innermost run of the autograd engine on this thread.
        stepping: The optimizer whose step was running.
        is_fetching: Whether a data loader was fetching a batch.
        number: That of the autograd node of the op, if it made one.
        moment: How far the training was.
        makes_graph: Whether autograd was recording.
        is_in_backward: Whether the autograd engine was running.
        place: Line and module; in backward those of the Python code that ran the op, else of the node.
        node: The running autograd node, in backward.
        from_python: Whether, in backward, Python code ran the op: a hook, a custom function, a recomputation.
        in_library: Whether that Python code is a library's.
        is_compiled: Whether the op is part of a compiled function.
        in_hand: The parameters that a library's optimizer is at: how many at once -> which.
    """

    def __init__(self, watcher: Watcher, frame: Any) -> None:
        self.call = watcher.call
        self.run = watcher.runs[-1] if watcher.runs else None
        self.stepping = watcher.stepping[-1] if watcher.stepping else None
        self.is_fetching = watcher.fetching > 0
        self.number = watcher.number - 1
        self.moment = watcher.tracer.steps.now()
        self.makes_graph = torch.is_grad_enabled()
        self.place = NOWHERE
        self.node: NodeSite | None = None
        self.from_python = self.in_library = self.is_compiled = False
        self.in_hand: dict[int, tuple[weakref.ref[torch.Tensor], ...]] = {}
        self._running = current_node()
        self.is_in_backward = self.run is not None or self._running is not None
        self._watcher: Watcher | None = watcher
        self._frame = frame

    def locate(self, *, quickly: bool = False) -> None:
        """Reads the lines and the node, while the op is still on the stack.

        Args:
            quickly: Without what an optimizer's local variables hold.
        """
        watcher, frame = self._watcher, self._frame
        if watcher is None:
            return
        if self.is_in_backward:
            self._locate_in_backward(watcher, frame)
        else:
            self.place = Place(watcher.tracer.frames.read(frame), self.call)
            self.is_compiled = _is_compiled(frame)
        if not quickly and self.stepping is not None and self.stepping.is_from_library:
            self.in_hand = _parameters_in_hand(frame)
        self._watcher = self._frame = self._running = None

    def _locate_in_backward(self, watcher: Watcher, frame: Any) -> None:
        has_python, points = watcher.tracer.frames.read_in_engine(frame)
        if self._running is not None and not _is_for_bucket(frame):
            self.node = watcher.sites.node_site(self._running, op_name)
        if points:
            self.from_python, self.place = True, Place(points, self.call)
        elif self.node is not None and self.node.place is not None:
            self.place = self.node.place
        else:
            # A hook that a library has set, or a node that no forward op made: the line that ran backward.
            self.from_python = self.in_library = has_python
            started = watcher.runs[0].place if watcher.runs else NOWHERE
            self.place = Place(started.points, None)


def _is_compiled(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_name == _COMPILED_CALL:
            return True
        frame = frame.f_back
    return False


def _parameters_in_hand(frame: Any) -> dict[int, tuple[weakref.ref[torch.Tensor], ...]]:
    """Returns what the local variables of an optimizer's loop hold: a parameter, lists of several."""
    found: dict[int, tuple[weakref.ref[torch.Tensor], ...]] = {}
    while frame is not None:
        for value in frame.f_locals.values():
            held = value if isinstance(value, (list, tuple)) else (value,)
            if held and all(isinstance(one, nn.Parameter) for one in held):
                found.setdefault(len(held), tuple(weakref.ref(one) for one in held))
        if frame.f_code.co_name == "step":
            break
        frame = frame.f_back
    return found


def _is_for_bucket(frame: Any) -> bool:
    """Whether a communication hook is running: it serves a bucket of gradients, and no one node."""
    bucket = getattr(torch.distributed, "GradBucket", None)  # absent where torch was built without it
    if bucket is None:
        return False
    while frame is not None and frame.f_code is not ENGINE_CODE:
        if any(isinstance(value, bucket) for value in frame.f_locals.values()):
            return True
        frame = frame.f_back
    return False
