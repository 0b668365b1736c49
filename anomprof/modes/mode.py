"""What a mode is: a context manager around one training step, with proof that it was on.

Where a mode may act within a step (the step itself is ``anomprof.harness.step.take_step``)::

    with mode.turn(workload):                 # around all steps of a turn; wraps blocks, makes a scaler
        for batch in batches:
            with mode.step():                 # the clock runs from before this line ...
                with mode.forward():
                    loss = workload.loss(model, batch)
                mode.scaler.scale(loss).backward()
                mode.scaler.unscale_(optimizer)
                mode.gradients(parameters)    # always sees unscaled gradients
                mode.scaler.step(optimizer)
                mode.scaler.update()
            # ... to after the device has finished
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from anomprof.workload import Workload


@dataclass(frozen=True)
class ModeOptions:
    """What the user chose for the modes that have a choice.

    Attributes:
        clip_norm: Largest 2-norm over all gradients that ``clip-norm`` leaves as it is.
        clip_value: Largest magnitude of one gradient element that ``clip-value`` leaves as it is.
    """

    clip_norm: float = 1.0
    clip_value: float = 0.5


@dataclass(frozen=True)
class Seen:
    """What was seen of a mode outside the timed passes, for its proof.

    Attributes:
        forward_ops: Calls below autograd in the forward pass of one observed step, by op name.
        backward_ops: The same for the backward pass.
        float_outputs: Floating-point outputs of these calls, by dtype (``"torch.bfloat16"``).
        nodes: Autograd nodes below the loss.
        nodes_with_stack: Those that carry a Python stack (anomaly mode puts it there).
        op_calls: Rows of the profiled step: op name -> calls. Empty where it was not profiled.
        parameters: Number of parameter tensors that require a gradient.
        gradients: Number of those that had a gradient after the backward pass.
        figures: What the mode counted in the watched pass (:meth:`Mode.figures`).
    """

    forward_ops: Mapping[str, int] = field(default_factory=dict)
    backward_ops: Mapping[str, int] = field(default_factory=dict)
    float_outputs: Mapping[str, int] = field(default_factory=dict)
    nodes: int = 0
    nodes_with_stack: int = 0
    op_calls: Mapping[str, int] = field(default_factory=dict)
    parameters: int = 0
    gradients: int = 0
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """Whether a mode was really on.

    Attributes:
        applied: False marks the mode's row in every report instead of printing its result.
        text: What was seen, or what was missing.
    """

    applied: bool
    text: str


class Scaler(Protocol):
    """The part of ``torch.amp.GradScaler`` that a step calls."""

    def scale(self, outputs: torch.Tensor) -> torch.Tensor:
        """Multiplies the loss."""

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides the gradients."""

    def step(self, optimizer: torch.optim.Optimizer) -> Any:
        """Takes the optimizer step unless a gradient is not finite."""

    def update(self) -> None:
        """Adapts the scale."""


class NoScaler:
    """Stands in where gradients are not scaled."""

    def scale(self, outputs: torch.Tensor) -> torch.Tensor:
        """Returns the loss as it is."""
        return outputs

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Does nothing."""

    def step(self, optimizer: torch.optim.Optimizer) -> Any:
        """Takes the optimizer step."""
        return optimizer.step()

    def update(self) -> None:
        """Does nothing."""


class Mode:
    """Base of all modes; by itself it changes nothing.

    Override what the mode needs. A mode leaves everything as it found it when its contexts end.

    Attributes:
        name: As typed after ``--modes``.
        summary: One line for ``anomprof list``.
        keeps_numbers: Promises that the trained parameters are bitwise those of the baseline.
        family: Two modes of one family cannot be combined. Empty: no such restriction.
        rank: Order in which combined modes act, whatever order was typed; low ranks are outermost.
        own_process: Needs a fresh process (with a baseline of its own), because it leaves traces in
            the one it ran in.
        holds_profiler: Keeps torch's profiler for itself, so that no pass can profile it.
        observable: Works under the dispatch mode with which one untimed step is watched.
    """

    name: str = ""
    summary: str = ""
    keeps_numbers: bool = False
    family: str = ""
    rank: int = 50
    own_process: bool = False
    holds_profiler: bool = False
    observable: bool = True

    def __init__(self, options: ModeOptions) -> None:
        self.options = options
        self.scaler: Scaler = NoScaler()
        #: True in the untimed pass that gathers evidence: only then may the mode count at a cost.
        self.watched = False

    def unavailable(self, device: torch.device) -> str | None:
        """Returns why the mode cannot run on this device, or None."""
        return None

    def unfit(self, workload: Workload) -> str | None:
        """Returns why the mode cannot run with this workload, or None."""
        return None

    def turn(self, workload: Workload) -> AbstractContextManager[None]:
        """Returns the context around all steps of one turn; starts from the same state each time."""
        return contextlib.nullcontext()

    def step(self) -> AbstractContextManager[None]:
        """Returns the context around one step; entering and leaving it is timed."""
        return contextlib.nullcontext()

    def forward(self) -> AbstractContextManager[None]:
        """Returns the context around the forward pass and the loss."""
        return contextlib.nullcontext()

    def gradients(self, parameters: Sequence[torch.Tensor]) -> None:
        """Acts on the (unscaled) gradients before the optimizer step."""

    def figures(self) -> Mapping[str, Any]:
        """Returns what the mode counted since its turn began; called at the end of a watched turn."""
        return {}

    def settled(self) -> bool:
        """Whether the watched pass has seen enough; it goes on (for a while) until then."""
        return True

    def turn_figures(self) -> Mapping[str, float]:
        """Returns counts of a timed turn that cost nothing to know; added up over the turns."""
        return {}

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Judges from what was seen, of this mode and of the baseline, whether the mode was on."""
        return Proof(False, f"the mode {self.name!r} offers no proof: override Mode.proof")


@contextlib.contextmanager
def replaced(owner: Any, attribute: str, value: Any) -> Iterator[None]:
    """Sets an instance attribute for the time of the context, then puts back what was there.

    An attribute that came from the class is removed again instead of being pinned on the instance.
    """
    missing = object()
    before = vars(owner).get(attribute, missing)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, before)
