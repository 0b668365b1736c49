"""The training step: the one place where it is spelled out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.instruments.observer import Observer
from anomprof.modes.mode import Mode
from anomprof.workload import Workload


@dataclass(frozen=True)
class StepOutcome:
    """What one step came to.

    Attributes:
        loss: Detached, still on the device: reading it would make the host wait.
        seconds: From before the mode was entered to after it was left and the device had finished.
        edge_seconds: The part of it spent entering and leaving the mode.
    """

    loss: torch.Tensor
    seconds: float
    edge_seconds: float


def take_step(
    workload: Workload,
    parameters: Sequence[torch.Tensor],
    mode: Mode,
    batch: Any,
    finish: Callable[[], None],
    observer: Observer | None = None,
) -> StepOutcome:
    """Takes one training step in a mode and times it.

    Args:
        workload: Supplies model, optimizer and loss.
        parameters: The model's parameters that require a gradient.
        mode: Acts at the places drawn in ``anomprof.modes.mode``.
        batch: On the model's device.
        finish: Returns when the device has finished all work given to it.
        observer: Watches the step; such a step is never timed.
    """
    entered = time.perf_counter()
    with mode.step():
        begun = time.perf_counter()
        workload.optimizer.zero_grad(set_to_none=True)
        with mode.forward():
            loss = workload.loss(workload.model, batch)
        if observer is not None:
            observer.graph(loss)
        scaler = mode.scaler
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        if observer is not None:
            observer.backward_done()
        scaler.unscale_(workload.optimizer)
        mode.gradients(parameters)
        scaler.step(workload.optimizer)
        scaler.update()
        finish()  # the step's end: without it an accelerator would still be working
        done = time.perf_counter()
    left = time.perf_counter()
    return StepOutcome(loss.detach(), left - entered, (begun - entered) + (left - done))


def check_loss(loss: Any) -> None:
    """Refuses what backward cannot be called on.

    Raises:
        UserError: Not a tensor, not one number, or not connected to the parameters.
    """
    if not isinstance(loss, torch.Tensor):
        raise UserError(
            f"the workload's loss returned {type(loss).__name__}; return a scalar tensor", COULD_NOT_MEASURE
        )
    if loss.numel() != 1:
        shape = tuple(loss.shape)
        raise UserError(
            f"the workload's loss returned a tensor of shape {shape}; reduce it to one number, for instance "
            "with .mean()",
            COULD_NOT_MEASURE,
        )
    if not loss.requires_grad:
        raise UserError(
            "the workload's loss does not depend on any parameter that requires a gradient; "
            "compute it from the model's output, outside torch.no_grad()",
            COULD_NOT_MEASURE,
        )
