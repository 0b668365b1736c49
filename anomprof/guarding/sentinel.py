"""Decides when a step is bad, has it replayed under the trace, and says what is to happen then."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from anomprof.findings import Finding
from anomprof.guarding import gauge
from anomprof.guarding.buffers import Buffers
from anomprof.guarding.history import History, StepRow
from anomprof.guarding.recorder import Recorder
from anomprof.guarding.replaying import Replay, Trip
from anomprof.guarding.tape import Captured, Entry, slots_in
from anomprof.tracing import arrivals
from anomprof.tracing.calls import ModuleCall, has_parameters
from anomprof.tracing.contents import tensors_in
from anomprof.tracing.frames import Point
from anomprof.tracing.looks import is_number
from anomprof.tracing.tracer import Tracer

_MOST_REPLAYS = 12  # per run; bad steps after that are only counted
_SKIPS_LOOKED_AT = (2, 5, 24)  # skipped steps in a row at which LossScaling decides: then it has to know why


class Sentinel:
    """Watches the steps of a training at almost no cost.

    Args:
        tracer: Whose trace names the origin in a replay.
        on_bad: What happens to a bad step: ``stop``, ``skip`` or ``continue``.

    Attributes:
        history: The last steps in numbers.
        replay: Does steps again.
    """

    def __init__(self, tracer: Tracer, on_bad: str, tell: Callable[[Finding], None]) -> None:
        self.tracer = tracer
        self.history = History()
        self.buffers = Buffers()
        self.replay = Replay(tracer, self.buffers)
        self._on_bad = on_bad
        self._tell = tell
        self._replays = 0
        self._is_bad = False  # this step, as is known already
        self._losses: list[float] = []
        self._norms: list[float] = []
        self._skips = 0
        self._zeros = 0
        self._sick: weakref.ref[torch.Tensor] | None = None
        self._steps_then = tracer.steps.state()
        self._known: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._parts: weakref.WeakKeyDictionary[nn.Module, frozenset[int]] = weakref.WeakKeyDictionary()

    # Calls of modules -------------------------------------------------------------------------

    def begin_root(self, recorder: Recorder, module: nn.Module, frame: Any) -> None:
        """A module is about to be called from outside all modules."""
        steps = self.tracer.steps
        if has_parameters(module):
            if steps.gap and (torch.is_grad_enabled() or steps.gap == "step"):
                steps.begin_forward()
            if module not in self._known:
                self._known.add(module)
                with recorder.paused():
                    self._meet(module, frame)

    def _meet(self, module: nn.Module, frame: Any) -> None:
        """A model is called for the first time: is it good at all?"""
        tracer = self.tracer
        if module not in tracer.stakes.roots:
            tracer.stakes.roots.add(module)
            call = ModuleCall(tracer.references.of(module), None, tracer.frames.read(frame))
            arrivals.look_at_state(tracer, module, call)
        self.buffers.add(module)
        parameters = list(module.parameters())
        if gauge.is_suspicious(gauge.norms(parameters)):
            bad = [parameter for parameter in parameters if gauge.is_bad(parameter)]
            self._sick = weakref.ref(bad[0]) if bad else None

    def end_root(self, recorder: Recorder, module: nn.Module, out: Any) -> None:
        """It has returned: in evaluation, what it returns matters."""
        if torch.is_grad_enabled() or self.is_sick or not has_parameters(module):
            return
        numbers = [tensor for tensor in tensors_in(out) if is_number(tensor) and tensor.numel()]
        if gauge.is_suspicious(gauge.norms(numbers)) and any(gauge.is_bad(tensor) for tensor in numbers):
            if any(bool(torch.isfinite(tensor).any()) for tensor in numbers):
                recorder.doubtful = recorder.tape.entries[-1]  # some of it may be meant to be dropped
            else:
                self.trip(recorder, Trip("output", module=module))
        elif not any(entry.gradients for entry in recorder.tape.entries):
            recorder.tape.clear()  # its results are plain numbers from here on

    def after_doubtful(self, recorder: Recorder, entry: Entry, out: Any) -> None:
        """A call was made after a module had returned some bad values: is anything made of them?"""
        if entry.is_module or not any(source is recorder.doubtful for source in entry.sources()):
            return
        bad = [tensor for tensor in tensors_in(out) if is_number(tensor) and gauge.is_bad(tensor)]
        if bad or (isinstance(out, float) and out - out != 0):
            doubtful, recorder.doubtful = recorder.doubtful, None
            self.trip(recorder, Trip("output", module=doubtful.call if doubtful is not None else None))

    # The autograd engine ----------------------------------------------------------------------

    def begin_engine(self, recorder: Recorder, roots: Any, points: tuple[Point, ...]) -> None:
        """The engine is about to run: what it starts from is the loss."""
        if self.is_sick or self._is_bad:
            return
        numbers = [root for root in roots if isinstance(root, torch.Tensor) and is_number(root)]
        singles = [root.detach() for root in numbers if root.numel() == 1 and not root.is_complex()]
        values = [single.item() for single in singles]
        if len(singles) < len(numbers):
            values += gauge.norms([root for root in numbers if root.numel() != 1 or root.is_complex()])
        self._losses = values
        if gauge.is_suspicious(values) and any(gauge.is_bad(root) for root in numbers):
            self.trip(recorder, Trip("loss", points=points, values=values))

    def end_engine(self, points: tuple[Point, ...], *, accumulates: bool) -> None:
        """It has run."""
        self.tracer.steps.end_backward(points[:1], accumulates=accumulates)

    def fail_engine(self, recorder: Recorder, error: BaseException, points: tuple[Point, ...]) -> None:
        """It has raised."""
        self.tracer.steps.end_backward(points[:1], accumulates=True)
        if not self.is_sick:
            self.trip(recorder, Trip("error", points=points, error=error))

    # Updates ----------------------------------------------------------------------------------

    def begin_step(self, recorder: Recorder, optimizer: Any, points: tuple[Point, ...]) -> None:
        """An optimizer is about to step: the last moment at which the parameters are good for certain."""
        if not self.tracer.steps.gap:
            self.tracer.steps.gap = "backward"
        if self.is_sick:
            return
        found = getattr(optimizer, "found_inf", None)
        if isinstance(found, torch.Tensor) and found.item():
            return  # a fused optimizer that a GradScaler has told to leave this step out
        gradients = [parameter.grad for parameter in _parameters(optimizer) if parameter.grad is not None]
        looked_at = [*gradients, *self.buffers.changing()]
        values = gauge.norms(looked_at)
        self._norms = values[: len(gradients)]
        if self._is_bad:
            self._leave_out(optimizer)
            return
        if gauge.is_suspicious(values):
            bad = [tensor for tensor in gradients if gauge.is_bad(tensor)] + self.buffers.spoilt()
            if bad:
                self.trip(recorder, Trip("gradient", points=points, optimizer=optimizer, tensors=bad))
                self._leave_out(optimizer)
        elif values and not sum(self._norms) and self._zeros < 2:
            self._zeros += 1
            self.trip(recorder, Trip("zero", points=points, optimizer=optimizer))

    def end_step(self, recorder: Recorder, optimizer: Any, points: tuple[Point, ...]) -> None:
        """An optimizer has stepped."""
        tracer = self.tracer
        if not self.is_sick:
            parameters = list(_parameters(optimizer))
            if gauge.is_suspicious(gauge.norms(parameters)):
                bad = [parameter for parameter in parameters if gauge.is_bad(parameter)]
                if bad:
                    if not self._is_bad:
                        self.trip(recorder, Trip("update", points=points, optimizer=optimizer, tensors=bad))
                    self._sick = weakref.ref(bad[0])
        step = tracer.narrator.step_of(tracer.steps.now())
        tracer.steps.end_step(optimizer)
        tracer.stakes.add_optimizer(optimizer)
        if points:
            tracer.narrator.step_lines[tracer.steps.number_of(optimizer)] = points[0]
        rates = [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]
        loss = self._losses[-1] if self._losses else None
        self.history.add(StepRow(step, loss, self._norms, rates))
        self._skips = 0
        recorder.stepped(optimizer, points)
        self._begin_next(recorder, set(map(id, _parameters(optimizer))))

    def end_scaled_step(self, recorder: Recorder, optimizer: Any, *, was_skipped: bool, scale: float) -> None:
        """A GradScaler has let an optimizer step, or has left the step out."""
        if was_skipped:
            self._skips += 1
            if not self.is_sick and (self._skips in _SKIPS_LOOKED_AT or scale < 1):
                self.trip(recorder, Trip("scaler", optimizer=optimizer, scale=scale))
            self._losses = []
        self.tracer.end_scaled_step(optimizer, was_skipped=was_skipped, scale=scale)
        if was_skipped:
            self._begin_next(recorder, set(map(id, _parameters(optimizer))))

    def before_update(self, recorder: Recorder, parameter: torch.Tensor, others: list[torch.Tensor]) -> bool:
        """The script is about to change a parameter by itself; returns whether it may."""
        if self.is_sick or self._is_bad:
            return True
        numbers = [other for other in others if is_number(other)]
        if gauge.is_suspicious(gauge.norms(numbers)) and any(gauge.is_bad(other) for other in numbers):
            self.trip(recorder, Trip("written", tensors=[parameter]))
            return self._on_bad != "skip"
        return True

    def after_update(self, recorder: Recorder, parameter: torch.Tensor) -> None:
        """The script has changed a parameter by itself."""
        if not self.is_sick and gauge.is_suspicious(gauge.norms([parameter])) and gauge.is_bad(parameter):
            self._sick = weakref.ref(parameter)
        self._begin_next(recorder, {id(parameter)})

    def is_parameter(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's memory is that of a parameter."""
        stakes = self.tracer.stakes
        return stakes.parameter(self.tracer.see(tensor)) is not None

    # Bad steps --------------------------------------------------------------------------------

    @property
    def is_sick(self) -> bool:
        """Whether the model is bad already: all that follows is a consequence."""
        tensor = self._sick() if self._sick is not None else None
        if tensor is not None and gauge.is_bad(tensor):
            return True
        self._sick = None
        return False

    def trip(self, recorder: Recorder, trip: Trip) -> None:
        """A step is bad: finds out why, puts everything back, and tells."""
        if self._replays >= _MOST_REPLAYS or not self._lock.acquire(blocking=False):
            return
        try:
            with recorder.paused():
                self._is_bad = trip.is_harm
                self._replays += trip.is_harm
                found = self.replay.run(recorder.tape, trip, self._steps_then)
        finally:
            self._lock.release()
        for finding in found:
            self._tell(finding)

    def _leave_out(self, optimizer: Any) -> None:
        """Skips a bad step: without gradients an optimizer changes nothing."""
        if self._on_bad == "skip":
            for parameter in _parameters(optimizer):
                parameter.grad = None
            self.buffers.restore()

    def _is_stale(self, changed: set[int], entry: Entry) -> bool:
        """Whether a call used one of several tensors."""
        if entry.is_module:
            parts = self._parts.get(entry.call)
            if parts is None:
                parts = self._parts[entry.call] = frozenset(map(id, entry.call.parameters()))
            if not changed.isdisjoint(parts):
                return True
        return any(
            isinstance(slot, Captured) and id(slot.tensor) in changed
            for slot in slots_in((entry.args, entry.kwargs))
        )

    def _begin_next(self, recorder: Recorder, changed: set[int]) -> None:
        self._is_bad = False
        self._losses = []
        recorder.doubtful = None
        recorder.tape.begin_step(functools.partial(self._is_stale, changed))
        self.buffers.keep()
        self._steps_then = self.tracer.steps.state()


def _parameters(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]
