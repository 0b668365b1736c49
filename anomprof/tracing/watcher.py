"""Sees every op of one thread: runs it, looks at what it made, remembers where it stood."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import torch

from anomprof.sites import (
    DispatchMode,
    consists_of_others,
    current_node,
    modes_entered,
    next_sequence_number,
    without_modes,
)
from anomprof.tracing.backward import BackwardRun, ForwardSites
from anomprof.tracing.calls import ModuleCall
from anomprof.tracing.contents import LOOKED_AT, PLAIN_TENSORS, is_finite, tensors_in
from anomprof.tracing.ops import OpKind, kind_of
from anomprof.tracing.scene import Scene
from anomprof.tracing.sight import Sight

if TYPE_CHECKING:
    from anomprof.tracing.pending import Pending
    from anomprof.tracing.tracer import Tracer

_Tensor = torch.Tensor
_KINDS: dict[Any, OpKind] = {}


class Watcher(DispatchMode):  # type: ignore[misc]  # torch gives its base class no types
    """A dispatch mode: torch hands it every op below autograd.

    As long as all is finite it does three things per op: it runs it, takes the sum of what it made, and
    where a new autograd node begins it notes the user's frames. Everything else waits until something is bad.

    Attributes:
        call: The module call that is running.
        runs: Runs of the autograd engine that this thread has started, the innermost last.
        sites: Forward ops by the number of the node they made.
        fetching: How many data loaders are fetching a batch, nested.
        number: What the next autograd node gets, as last seen.
        stepping: The optimizers whose step is running, the innermost last.
    """

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer
        self.call: ModuleCall | None = None
        self.runs: list[BackwardRun] = []
        self.sites = ForwardSites()
        self.fetching = 0
        self.stepping: list[Any] = []
        self.modes_below = modes_entered()
        self.number = -1
        self._thread = threading.get_ident()

    #: Operators that take functions (``torch.cond``) run unseen, which is better than not at all.
    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would wrap the method below to keep its compiler away from it, at more than the method's own
        # cost: see keep_compiler_away.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an op and looks at its result."""
        tracer = self.tracer
        if tracer.rests or modes_entered() != self.modes_below:
            # A mode of torch's own below us means that a graph is being captured: nothing has a value there.
            return func(*args, **kwargs) if kwargs else func(*args)
        if types and not PLAIN_TENSORS.issuperset(types) and any(consists_of_others(kind) for kind in types):
            return NotImplemented  # the ops that such a tensor consists of come by one by one
        kind = _KINDS.get(func)
        if kind is None:
            kind = _KINDS[func] = kind_of(func)
        number = next_sequence_number()
        if number != self.number:
            self.number = number
            if tracer.steps.gap and not self.runs:
                tracer.steps.make_node()
            if self.runs:
                self._note_in_engine(number - 1, func, sys._getframe(1))
            else:
                self.sites.add(number - 1, (func, tracer.frames.read(sys._getframe(1)), self.call))
        out = func(*args, **kwargs) if kwargs else func(*args)
        if tracer.pending is not None:
            return self._look_later(tracer.pending, kind, args, kwargs, out, sys._getframe(1))
        if kind.writes:
            tracer.writes.add(self, kind, args, kwargs, sys._getframe(1))
        elif kind.is_view or not (kind.creates or tracer.marks.by_key):
            return out
        try:
            if self.is_bad(kind, args, kwargs, out):
                sight = Sight(kind, args, kwargs, out, tracer.see)
                tracer.found_bad(sight, Scene(self, sys._getframe(1)))
            elif tracer.marks.by_key and tracer.marks.touch(tensors_in((args, kwargs))):
                sight = Sight(kind, args, kwargs, out, tracer.see)
                tracer.found_finite(sight, Scene(self, sys._getframe(1)))
        except Exception as error:  # the user's training must go on
            tracer.give_up(error)
        return out

    def _look_later(
        self, pending: Pending, kind: OpKind, args: Any, kwargs: Any, out: Any, frame: Any
    ) -> Any:
        """Leaves what an op made on the device until it is read with all the rest."""
        tracer = self.tracer
        if kind.writes:
            tracer.writes.add(self, kind, args, kwargs, frame)
        elif kind.is_view:
            return out
        try:
            if kind.name == "aten::_local_scalar_dense":  # the script has read a number
                if isinstance(out, (float, complex)) and out - out != 0:
                    pending.flush()
                if tracer.marks.touch(tensors_in((args, kwargs))):
                    tracer.found_finite(Sight(kind, args, kwargs, out, tracer.see), Scene(self, frame))
            else:
                sight = Sight(kind, args, kwargs, out, pending.given, pending.made)
                pending.add(sight, Scene(self, frame))
        except Exception as error:  # the user's training must go on
            tracer.give_up(error)
        return out

    def _note_in_engine(self, number: int, function: Any, frame: Any) -> None:
        """Notes the maker of a node that is made while the engine runs.

        Python code that runs there (a recomputation, a custom backward) makes nodes of its own; those that
        a node of torch makes for a second derivative belong to the line that made this node.
        """
        _, points = self.tracer.frames.read_in_engine(frame)
        running = current_node()
        parent = self.sites.of_node(running) if running is not None and not points else None
        site = parent or (function, points or self.runs[-1].place.points, self.call)
        self.sites.add(number, site, on_engine_thread=threading.get_ident() != self._thread)

    def is_bad(self, kind: OpKind, args: Any, kwargs: Any, out: Any) -> bool:
        """Returns whether what an op made or wrote may hold NaN or Inf."""
        if kind.writes:
            for tensor in kind.written(args, kwargs or {}):
                if self._may_be_bad(tensor):
                    return True
            if kind.write_names[0] in ("self", "out") or out is None:
                return False  # it returns what it wrote
        if isinstance(out, _Tensor):
            return self._may_be_bad(out)
        if isinstance(out, (tuple, list)):
            for tensor in out if kind.answers is None else out[: kind.answers]:
                if self._may_be_bad(tensor):
                    return True
        return False

    def _may_be_bad(self, tensor: Any) -> bool:
        if type(tensor) not in PLAIN_TENSORS:
            return False  # no tensor, or one that consists of others
        if tensor.dtype not in LOOKED_AT:
            return tensor.is_floating_point() and self.tracer.looks.is_bad(tensor)
        try:
            if self.modes_below:
                with without_modes():
                    return not is_finite(tensor)
            return not is_finite(tensor)
        except (RuntimeError, NotImplementedError):
            return self.tracer.looks.is_bad(tensor)

    @property
    def is_in_backward(self) -> bool:
        """Whether the autograd engine runs."""
        return bool(self.runs) or current_node() is not None
