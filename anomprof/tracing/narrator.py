"""Turns events into findings: names, lines, the chain from origin to symptom, and what to do."""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from anomprof.advice import advise
from anomprof.findings import KIND_NAMES, Finding, Frame, Link
from anomprof.tracing.calls import Place, parameter_name, qualified_name
from anomprof.tracing.events import Event
from anomprof.tracing.frames import Point, describe
from anomprof.tracing.loops import depth_of
from anomprof.tracing.steps import Moment, Steps
from anomprof.tracing.symptom import Symptom

_NO_FRAME = Frame("", 0, "", "")


class Narrator:
    """Writes findings.

    Attributes:
        rank: Of a distributed run.
        step_lines: Where each optimizer's step was last called, by the order in which they first stepped.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._folder = str(Path.cwd())
        self.rank = int(os.environ.get("RANK", "0") or 0)
        self._names: dict[int, tuple[Any, str]] = {}
        self.step_lines: dict[int, Point] = {}

    def finding(self, origin: Event, event: Event, symptom: Symptom) -> Finding:
        """Returns the finding of an origin that was noticed through ``event``."""
        node = origin.node
        is_node = node is not None and not origin.from_python
        backward_op = (origin.first or origin).op if origin.phase == "backward" else None
        op = node.op if is_node and node is not None and node.op else origin.op
        if origin.phase == "backward" and not is_node and node is not None:
            op = origin.op
        frames = self.frames(origin.place)
        here = frames[0] if frames else _NO_FRAME
        told = self._told(symptom, event)
        first = origin.first or origin
        inputs = tuple(held.summary() for held in first.inputs)
        outputs = tuple(held.summary() for held in first.outputs)
        module = self.module_of(origin)
        kind = first.kind
        shown_node = node.name if node is not None and origin.phase == "backward" else None
        return Finding(
            kind=kind,
            phase=origin.phase,
            step=self._step(origin, event),
            rank=self.rank,
            op=op,
            node=shown_node,
            backward_op=backward_op,
            module=module,
            file=here.file,
            line=here.line,
            function=here.function,
            code=here.code,
            confidence=self._confidence(origin, here),
            inputs=inputs,
            outputs=outputs,
            callers=tuple(frames[1:]),
            chain=tuple(self._chain(origin, event)),
            symptom=told,
            advice=advise(
                kind,
                origin.phase,
                op,
                shown_node,
                inputs=inputs,
                outputs=outputs,
                module=module,
                symptom=told,
                code=here.code,
                message=origin.message,
                by_hand=origin.from_python,
            ),
            message=origin.message,
        )

    def error(
        self,
        phase: str,
        moment: Moment,
        op: str,
        node: str | None,
        module: str,
        frames: tuple[Frame, ...],
        chain: tuple[Link, ...],
        text: str,
    ) -> Finding:
        """Returns the finding of an error that autograd raised.

        Args:
            phase: Of the line to name.
            moment: When it ran.
            op: What it did.
            node: That could not do its work.
            module: Whose line it is.
            frames: The line, and those that led to it.
            chain: What follows the first link, which is the line itself.
            text: What autograd said.
        """
        here = frames[0] if frames else _NO_FRAME
        message = text.split(" Hint:")[0]
        return Finding(
            kind="error",
            phase=phase,
            step=self.step_of(moment, is_input=phase == "forward"),
            rank=self.rank,
            op=op,
            node=node,
            backward_op=None,
            module=module,
            file=here.file,
            line=here.line,
            function=here.function,
            code=here.code,
            confidence="exact" if here.line else "unknown",
            inputs=(),
            outputs=(),
            callers=frames[1:],
            chain=(Link(op, phase, module, here.file, here.line, here.code, "error"), *chain),
            symptom="an error of autograd",
            advice=advise("error", phase, op, node, module=module, code=here.code, message=message),
            message=message,
        )

    def harmless(self, origin: Event, *, is_read: bool) -> str:
        """Returns the note on a bad value of which nothing came, unless the script decided by it."""
        frames = self.frames(origin.place)
        kind = KIND_NAMES[origin.kind]
        op = origin.node.op if origin.node is not None and origin.node.op else origin.op
        module = self.module_of(origin)
        where = f"{frames[0].file}:{frames[0].line}" if frames else "an unknown line"
        what = ", ".join(filter(None, (op, module, origin.phase)))
        note = f"{kind} at {where} ({what}) harmed nothing: it reached no loss, gradient, parameter or output"
        if not is_read:
            return note
        warning = " (no comparison with NaN is ever true)" if origin.kind == "nan" else ""
        return f"{note}; the script read it as a number{warning}"

    def repeated(self, finding: Finding, event: Event) -> Finding:
        """Returns a finding that has happened once more."""
        step = self.step_of(event.moment)
        last = finding.step if finding.last_step is None else finding.last_step
        if step <= last:
            return finding
        return replace(finding, occurrences=finding.occurrences + 1, last_step=step)

    def step_of(self, moment: Moment, *, is_input: bool = False) -> int:
        """Returns the user's step at a moment."""
        if is_input and moment.gap == "step":
            moment = replace(moment, gap="")
        return moment.step(self._steps.optimizers_made(), self._levels())

    def frames(self, place: Place) -> list[Frame]:
        """Returns the user's frames of a place, innermost first."""
        return [describe(point, self._folder) for point in place.all_points()]

    def frame(self, point: Point) -> Frame:
        """Returns file, line, function and source of a point."""
        return describe(point, self._folder)

    def module_of(self, event: Event) -> str:
        """Returns the module of an event: where it ran, or whose parameter it wrote."""
        owners = [owner for reference in event.owners if (owner := reference()) is not None]
        if owners:
            modules = {parameter_name(owner)[1]: None for owner in owners[: 1 if event.is_step else None]}
            return next(iter(modules)) if len(modules) == 1 else ""  # code that treats all alike is nobody's
        module = event.place.module()
        if module is None and event.from_python and event.node is not None and event.node.place is not None:
            module = (
                event.node.place.module()
            )  # a hook, or a custom backward: the module whose node it serves
        return "" if module is None else self.module_name(module)

    def module_name(self, module: nn.Module) -> str:
        """Returns a module's name below its root."""
        known = self._names.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        name = qualified_name(module)
        if type(module).__module__ == "torch.nn.modules.loss" and name == type(module).__name__:
            name = ""  # loss code, whether it is called as a function or as a module of its own
        self._names[id(module)] = (weakref.ref(module), name)
        return name

    def tensor_name(self, tensor: torch.Tensor) -> str:
        """Returns the name of a parameter, or its shape where it has none."""
        name, owner = parameter_name(tensor)
        if name and "." not in name:
            return f"{name} of {owner}"  # a root's own: its class tells it from others of the same name
        return name or f"a tensor of shape {list(tensor.shape)}"

    def _told(self, symptom: Symptom, event: Event) -> str:
        thing = symptom.thing() if symptom.thing is not None else None
        if thing is None and event.owners:
            thing = event.owners[0]()  # the parameter that was written
        if thing is None:
            return symptom.what
        name = self.module_name(thing) if isinstance(thing, nn.Module) else self.tensor_name(thing)
        return " ".join(filter(None, (symptom.what, name, symptom.after)))

    def _step(self, origin: Event, event: Event) -> int:
        """Returns the step of a finding; data that lay there before training counts where training met it."""
        is_early = origin.phase == "input" and not origin.moment.has_begun
        moment = event.moment if is_early else origin.moment
        return self.step_of(moment, is_input=origin.phase in ("input", "forward"))

    def _levels(self) -> tuple[int, ...]:
        if len(self.step_lines) < 2:
            return ()
        return tuple(depth_of(self.step_lines[number]) for number in sorted(self.step_lines))

    def _confidence(self, origin: Event, here: Frame) -> str:
        if origin.is_outside and origin.phase == "backward":
            return "unknown"
        if not here.line:
            return "unknown"
        if origin.node is not None and not origin.from_python and not origin.node.op:
            return "module"
        return "exact"

    def _chain(self, origin: Event, event: Event) -> list[Link]:
        path = event.path()
        if origin not in path:
            path = [origin, *path[-1:]] if path else [origin]
        path = path[path.index(origin) :]
        links = []
        for step in path:
            frames = [self.frame(point) for point in step.place.all_points()[:1]]
            here = frames[0] if frames else _NO_FRAME
            op = (
                step.node.op
                if step is origin and step.node and not step.from_python and step.node.op
                else step.op
            )
            links.append(
                Link(op, step.phase, self._module_quickly(step), here.file, here.line, here.code, step.kind)
            )
        return links

    def _module_quickly(self, event: Event) -> str:
        module = event.place.module()
        return "" if module is None else self.module_name(module)
