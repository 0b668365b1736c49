"""Follows bad values: what made each, and what it harms."""

from __future__ import annotations

import functools
import traceback
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from anomprof.findings import Finding
from anomprof.sites import ENGINE_CODE, inside_transforms, is_accelerator, without_transforms
from anomprof.tracing import arrivals, mistakes
from anomprof.tracing.absorption import absorb
from anomprof.tracing.backward import BackwardRun, leaves_below
from anomprof.tracing.calls import ModuleCall, ModuleReferences, Place, has_parameters
from anomprof.tracing.circumstances import Circumstances
from anomprof.tracing.contents import Contents, tensors_in
from anomprof.tracing.events import Event
from anomprof.tracing.explanation import Explanation
from anomprof.tracing.frames import FrameReader
from anomprof.tracing.ledger import Ledger
from anomprof.tracing.looks import Looks, is_number
from anomprof.tracing.marks import Marks, Operand
from anomprof.tracing.narrator import Narrator
from anomprof.tracing.outputs import Outputs
from anomprof.tracing.pending import Pending
from anomprof.tracing.scaling import LossScaling
from anomprof.tracing.scene import Scene
from anomprof.tracing.sight import Seen, Sight
from anomprof.tracing.stakes import Stakes
from anomprof.tracing.steps import Steps
from anomprof.tracing.symptom import Symptom
from anomprof.tracing.watcher import Watcher


class Tracer:
    """What is known of one run.

    Args:
        on_finding: Called with each new finding the moment it is made.
        on_trouble: Called with one sentence when something fails in the trace itself.
        boundaries: Code of ours at which reading the user's frames stops.
        own_code: Returns files and folders of the user's code, also where they are installed.

    Attributes:
        rests: Lets ops pass unseen: the model is bad already, and all that follows is a consequence.
        has_failed: Rests for good.
    """

    def __init__(
        self,
        on_finding: Callable[[Finding], None],
        on_trouble: Callable[[str], None],
        boundaries: tuple[Any, ...],
        own_code: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.frames = FrameReader(boundaries, ENGINE_CODE, own_code)
        self.marks = Marks()
        self.steps = Steps()
        self.stakes = Stakes()
        self.looks = Looks()
        self.outputs = Outputs()
        self.references = ModuleReferences()
        self.scaling = LossScaling()
        self.narrator = Narrator(self.steps)
        self.ledger = Ledger(self.narrator, on_finding)
        self.circumstances = Circumstances(self.steps, self.stakes, self.marks)
        self.explanation = Explanation(self.circumstances.outside)
        self.pending: Pending | None = None
        self.rests = False
        self.has_failed = False
        self.writes = mistakes.Writes()
        self._on_trouble = on_trouble
        self._last_loss: Event | None = None
        self._sick: weakref.ref[torch.Tensor] | None = None

    # Ops --------------------------------------------------------------------------------------

    def found_bad(self, sight: Sight, scene: Scene) -> None:
        """An op has made or written something that may be bad."""
        bad = [seen for seen in sight.answers if seen.is_bad]
        if not bad:  # the sum overflowed, the values did not
            if self.marks:
                self.found_finite(sight, scene)
            return
        operands = self.circumstances.operands(sight)
        event = self.circumstances.event(scene, sight, operands, bad)
        self.explanation.explain(event, operands, sight.bad_numbers())
        self.explanation.remember(event, scene.number)
        if sight.kind.is_arrival:
            event.message = arrivals.bad_rows(bad[0].live, "row")
        if event.origins == (event,) and not (event.is_literal or event.is_uninitialised):
            self.ledger.doubt(event)
        for seen in sight.made:
            if seen.held is not None and seen.is_bad:
                self.marks.add(seen, event, nan=seen.held.nan > 0, inf=seen.held.inf > 0)
            elif seen in sight.written:
                self.marks.clear(seen)
        if scene.run is not None:
            scene.run.events.append(event)
        elif scene.call is None:
            for origin, symptom in self.outputs.used(operands):
                self.harm(origin, symptom)
        is_loss = len(bad) == 1 and bad[0].numel == 1 and any(o.seen.requires_grad for o in operands)
        if is_loss and event.phase == "forward" and scene.makes_graph:
            self._last_loss = event
        self._check_written(scene, event, [seen for seen in bad if seen in sight.written])

    def found_finite(self, sight: Sight, scene: Scene) -> None:
        """An op's result is finite, though bad values are about: what it overwrote, absorbed or read."""
        marked = [(seen, mark) for seen in sight.arguments if (mark := self.marks.of(seen)) is not None]
        if not marked:
            return
        kind, written = sight.kind, sight.written
        if scene.moment.gap and not scene.is_in_backward and not kind.is_view:
            zeroed = absorb(self.marks, marked, written, written or sight.made)
            if zeroed is not None:
                self.harm(zeroed, Symptom("update, which it turns into zeros"))
        for seen in written:
            mark = self.marks.of(seen)
            if mark is not None and mark.absorbed is None:
                self.marks.clear(seen)
        if kind.name == "aten::_local_scalar_dense":
            seen, mark = marked[0]
            held = seen.if_bad
            event = mark.event(held.nan > 0) if held is not None else None
            if event is not None:
                self.explanation.note_read(event)
                self.ledger.note_read(event)
                for origin, symptom in self.outputs.used([Operand(seen, held, mark)]):
                    self.harm(origin, symptom)

    def see(self, tensor: torch.Tensor) -> Seen:
        """Returns a tensor as it is seen now."""
        return Seen(tensor, self.looks)

    def given(self, tensor: torch.Tensor) -> Seen:
        """Returns a tensor as it is seen now, or as it will be once it has been read."""
        return self.see(tensor) if self.pending is None else self.pending.given(tensor)

    def when_read(self, check: Callable[[], None]) -> None:
        """Does something at once, or where numbers stay on the device once they have been read."""
        if self.pending is None:
            check()
        else:
            self.pending.later(check)

    def catch_up(self) -> None:
        """Reads what has stayed on the device."""
        if self.pending is not None and not self.has_failed:
            self.pending.flush()

    def _forget_freed(self) -> None:
        if not self.pending:  # what is pending may still lead to memory that has been freed since
            self.marks.forget_freed()

    def give_up(self, error: Exception) -> None:
        """Switches the trace off after a fault of its own."""
        self.rests = self.has_failed = True
        line = traceback.extract_tb(error.__traceback__)[-1]
        self._on_trouble(
            f"the trace failed ({type(error).__name__}: {error}, {line.name}:{line.lineno}) and is off; "
            "your script goes on"
        )

    # Modules and data -------------------------------------------------------------------------

    def enter_root(self, watcher: Watcher, module: nn.Module, inputs: Any, call: ModuleCall) -> None:
        """A module is called that no other module called."""
        if watcher.is_in_backward:
            return
        if self.rests:
            self._wake_if_healed()
            if self.rests:
                return
        if has_parameters(module):  # others compute losses and metrics
            if torch.is_grad_enabled() or self.steps.gap == "step":
                self.steps.begin_forward()
            if not inside_transforms():
                arrivals.look_at_inputs(self, inputs, call)
            if module not in self.stakes.roots:
                if self.pending is None and is_accelerator(next(nn.Module.parameters(module))):
                    self.pending = Pending(self)
                self.stakes.roots.add(module)
                self.catch_up()
                arrivals.look_at_state(self, module, call)
        self._forget_freed()

    def leave_root(self, watcher: Watcher, module: nn.Module, out: Any) -> None:
        """A module that no other module called has returned: in evaluation, what it returns matters."""
        if self.rests or watcher.is_in_backward or not has_parameters(module):
            return
        for tensor in tensors_in(out):
            if not tensor.requires_grad and is_number(tensor):
                seen, is_all = self.given(without_transforms(tensor)), tensor is out
                self.when_read(functools.partial(self._look_at_output, module, seen, is_all=is_all))

    def _look_at_output(self, module: nn.Module, seen: Seen, *, is_all: bool) -> None:
        mark = self.marks.of(seen)
        held = seen.if_bad if mark is not None else None
        event = mark.event(held.nan > 0) if mark is not None and held is not None else None
        if event is None or held is None or event.is_all_literal:
            return
        symptom = Symptom.of("output of", module, "in evaluation")
        if is_all and held.nan + held.inf == held.numel:
            self.harm(event, symptom)
        else:  # some of it may be meant to be dropped
            self.outputs.add(event, symptom)

    # The autograd engine ----------------------------------------------------------------------

    def begin_backward(self, watcher: Watcher, run: BackwardRun, roots: tuple[torch.Tensor, ...]) -> None:
        """The engine is about to run: what it starts from is the loss."""
        if self.rests:
            self._wake_if_healed()
            return
        if inside_transforms() or watcher.runs[:-1]:
            return
        for root in roots:
            if isinstance(root, torch.Tensor) and is_number(root):
                self.when_read(functools.partial(self._look_at_loss, self.given(root), run.place))

    def _look_at_loss(self, seen: Seen, place: Place) -> None:
        if (held := seen.if_bad) is None:
            return
        mark = self.marks.of(seen)
        event = mark.event(held.nan > 0) if mark is not None else None
        if event is None:
            event = self.circumstances.outside(seen, held, place, "", phase="forward")
        self.harm(event, Symptom("loss"), literal_counts=True)

    def end_backward(self, watcher: Watcher, run: BackwardRun, result: Any, inputs: Any) -> None:
        """The engine has run: what it left are gradients."""
        self.catch_up()
        is_nested = bool(watcher.runs)
        if is_nested:
            watcher.runs[-1].events.extend(run.events)
        else:
            self.steps.end_backward(run.place.points[:1], accumulates=run.accumulates)
        if self.rests or not run.events:
            return
        if inside_transforms():
            self._note_gradients_of_transform(result)
            return
        if run.accumulates:
            gradients = [(leaf, leaf.grad) for leaf in leaves_below(run.roots)]
        else:
            gradients = [
                pair
                for pair in zip(inputs or (), result or (), strict=False)
                if isinstance(pair[0], nn.Parameter)
            ]
        for leaf, gradient in gradients:
            seen = self.see(gradient) if gradient is not None else None
            if seen is not None and (held := seen.if_bad) is not None:
                self._harm_gradient(leaf, seen, held, run)
        if not is_nested:
            self._forget_freed()

    def look_at_gradients(self, leaves: Iterable[torch.Tensor]) -> None:
        """Looks at the gradients that an optimizer is about to use: changed, perhaps, since backward."""
        for leaf in leaves:
            seen = self.see(leaf.grad) if leaf.grad is not None else None
            if seen is None or (held := seen.if_bad) is None:
                continue
            mark = self.marks.of(seen)
            event = mark.event(held.nan > 0) if mark is not None else None
            if event is not None:
                self.harm(event, Symptom.of("gradient of", leaf), literal_counts=True)

    def fail_backward(self, watcher: Watcher, run: BackwardRun, error: BaseException) -> None:
        """The engine has raised."""
        if watcher.runs or self.has_failed:
            return
        self.catch_up()
        self.steps.end_backward(run.place.points[:1], accumulates=run.accumulates)
        if "returned nan values" in str(error):  # anomaly mode's own error
            events = [event for event in run.events if not event.is_all_literal]
            if events:
                self.harm(events[-1], Symptom("the script's own anomaly mode, which raised"))
            return
        finding = mistakes.explain(self, watcher, run, str(error))
        if finding is not None:
            self.ledger.keep(finding)

    def _note_gradients_of_transform(self, gradients: Any) -> None:
        """What torch.func's grad returns is harm once it is used."""
        for gradient in tensors_in(gradients):
            mark = self.marks.of(self.see(without_transforms(gradient)))
            event = mark.event(True) if mark is not None else None
            if event is not None and not event.is_all_literal:
                self.outputs.add(event, Symptom("gradient returned by torch.func"))

    def _harm_gradient(self, leaf: torch.Tensor, gradient: Seen, held: Contents, run: BackwardRun) -> None:
        mark = self.marks.of(gradient)
        event = mark.event(held.nan > 0) if mark is not None else None
        if event is None:
            event = ([event for event in run.events if not event.is_all_literal] or run.events)[-1]
        for origin in event.origins:
            is_hook = origin.from_python and not origin.in_library and origin.place.call is None
            if (
                is_hook
                and not origin.owners
                and origin.node is not None
                and "AccumulateGrad" in origin.node.name
            ):
                origin.owners = (weakref.ref(leaf),)  # the hook of a parameter
        symptom = Symptom.of("gradient of", leaf)
        if self.scaling.is_scaled:
            self.scaling.hold(event, symptom)
            for origin in event.origins:
                self.ledger.settle(origin)
        else:
            self.harm(event, symptom, literal_counts=True)

    # Optimizers -------------------------------------------------------------------------------

    def end_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has taken its step."""
        self.steps.end_step(optimizer)
        self.stakes.add_optimizer(optimizer)
        if not self.rests:
            self._forget_freed()
            if self._sick is not None:
                self.rests = not self._is_healed()

    def end_scaled_step(self, optimizer: torch.optim.Optimizer, *, was_skipped: bool, scale: float) -> None:
        """A GradScaler has let an optimizer step, or has skipped it."""
        if was_skipped:
            self.ledger.note(
                f"GradScaler skipped the update (scale {scale:g})", self.narrator.step_of(self.steps.now())
            )
            self.steps.end_step(optimizer)
        for event, symptom in self.scaling.skip(scale) if was_skipped else self.scaling.let_through():
            self.harm(event, symptom)

    # Harm -------------------------------------------------------------------------------------

    def harm(self, event: Event, symptom: Symptom, *, literal_counts: bool = False) -> None:
        """A bad value has reached something that matters: its origins become findings.

        Args:
            event: What left it there.
            symptom: What was harmed.
            literal_counts: Whether a value that the code wrote on purpose will do where there is no other.
        """
        origins = [origin for origin in event.origins if not origin.is_literal]
        if not origins and literal_counts:
            origins = list(event.origins)
        for origin in origins:
            if origin.phase == "forward" and event.phase == "optimizer" and origin.moment is event.moment:
                origin.phase = "optimizer"  # what it computed went into an update, not into a forward pass
            if origin.is_uninitialised and origin.phase == "forward":
                origin.phase = "input"
            self.ledger.report(origin, event, symptom)

    def finish(self) -> None:
        """Draws the conclusions that only the end allows."""
        self.catch_up()
        if self.has_failed:
            return
        for event, symptom in self.scaling.finish():
            self.harm(event, symptom)
        last = self._last_loss
        if last is not None and not self.ledger.findings and last.moment.is_same_step(self.steps.now()):
            self.harm(last, Symptom("loss, on which training ended without a backward"))
        self.ledger.close()

    def stop(self, error: BaseException) -> None:
        """An error has ended the training: a forbidden change in place, or a check that met a bad value."""
        self.catch_up()
        finding = mistakes.explain_raised(self, error)
        if finding is not None:
            self.ledger.keep(finding)
        elif not self.ledger.findings and mistakes.is_about_bad_values(error):
            recent = self.explanation.last_of(self.steps.now())
            if recent is not None:
                self.harm(recent, Symptom(f"{type(error).__name__}, which ended the script"))

    def _check_written(self, scene: Scene, event: Event, tensors: list[Seen]) -> None:
        """A bad value was written into a tensor: a parameter, a buffer, the state of an optimizer?"""
        if event.is_all_literal or event.is_uninitialised or scene.is_in_backward:
            return
        module = scene.call.module() if scene.call is not None else None
        for seen in tensors:
            parameter = self.stakes.parameter(seen)
            if parameter is not None:
                if self.steps.has_begun or self.stakes.roots:
                    self.harm(event, Symptom.of("parameter", parameter))
                    self._sick = weakref.ref(parameter)
            elif scene.stepping and self.stakes.state_owners(scene.stepping.optimizer, [seen]):
                self.harm(event, Symptom("optimizer state of"))
            elif (buffer := self.stakes.buffer(seen, module)) is not None:
                self.harm(event, Symptom.of("buffer", buffer))

    def _wake_if_healed(self) -> None:
        if not self.has_failed and self._is_healed():
            self.rests, self._sick = False, None

    def _is_healed(self) -> bool:
        tensor = self._sick() if self._sick is not None else None
        return tensor is None or self.see(tensor).if_bad is None
