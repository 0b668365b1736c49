"""Activation checkpointing: forget the activations of a block, compute them again in backward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from torch import nn
from torch.utils.checkpoint import checkpoint

from anomprof.modes.mode import Mode, Proof, Seen, replaced
from anomprof.workload import Workload


class Checkpoint(Mode):
    """Non-reentrant checkpointing of the blocks that the workload names."""

    name = "checkpoint"
    summary = "activation checkpointing of the workload's blocks"
    keeps_numbers = True
    family = "checkpoint"
    rank = 40
    reentrant: ClassVar[bool] = False

    def unfit(self, workload: Workload) -> str | None:
        """The workload must say where to checkpoint."""
        if not workload.checkpoint_blocks:
            return "the workload names no checkpoint_blocks"
        return None

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Wraps the blocks' forward functions for the time of the turn."""
        with contextlib.ExitStack() as stack:
            for name in workload.checkpoint_blocks:
                block = workload.model.get_submodule(name)
                stack.enter_context(replaced(block, "forward", self._checkpointed(block)))
            yield

    def _checkpointed(self, block: nn.Module) -> Callable[..., Any]:
        plain = block.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            if kwargs and self.reentrant:  # reentrant checkpointing takes positional arguments only
                return checkpoint(lambda *a: plain(*a, **kwargs), *args, use_reentrant=True)
            return checkpoint(plain, *args, use_reentrant=self.reentrant, **kwargs)

        return forward

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Counts forward ops that ran again in backward."""
        again = 0
        for op, calls in seen.backward_ops.items():
            if op in baseline.forward_ops:
                again += max(0, calls - baseline.backward_ops.get(op, 0))
        if seen.gradients < baseline.gradients:
            lost = baseline.gradients - seen.gradients
            return Proof(False, f"{again} ops recomputed, but {lost} parameters got no gradient")
        return Proof(again > 0, f"{again} ops recomputed in backward")


class CheckpointReentrant(Checkpoint):
    """The older, reentrant checkpointing."""

    name = "checkpoint-reentrant"
    summary = "the older, reentrant checkpointing"
    # Its first forward runs without gradients, and some ops (the LSTM on a CPU) round differently then.
    keeps_numbers = False
    reentrant = True
