"""What a workload is: the one thing that anomprof needs to know about a user's training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass
class Workload:
    """Something that takes training steps.

    One training step is always the same few lines (see ``anomprof.harness.step.take_step``)::

        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()

    Attributes:
        model: The model in training mode, already on the device it shall run on.
        optimizer: Built over the model's parameters.
        batches: Anything that can be iterated again and again and then yields the same batches in
            the same order: a list or a ``DataLoader``. A generator is read once and kept. Batches
            (tensors, or lists, tuples and dictionaries of them) may stay on the CPU: they
            are moved to the model's device while the data clock runs, not the step clock.
        loss: ``loss(model, batch)`` runs the forward pass and returns a scalar tensor.
        name: What reports call it.
        samples_per_batch: Samples (pictures, sequences) in one batch, for samples per second.
            None: not known.
        checkpoint_blocks: Qualified names (as in ``model.named_modules()``) of the modules that
            the modes ``checkpoint`` and ``checkpoint-reentrant`` recompute in the backward pass.
            Empty: these modes are reported as not available.
        facts: What a reader must know to judge the numbers, such as
            ``{"pictures": "synthetic", "image size": "224 px"}``; printed in reports as it stands.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Iterable[Any]
    loss: Callable[[nn.Module, Any], torch.Tensor]
    name: str = "workload"
    samples_per_batch: int | None = None
    checkpoint_blocks: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def parameter_count(self) -> int:
        """Number of scalar parameters, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())
