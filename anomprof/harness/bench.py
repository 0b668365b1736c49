"""A workload on the bench: warmed up, its state kept, ready to take the same steps again and again."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.harness.feed import Feed
from anomprof.harness.step import StepOutcome, check_loss, take_step
from anomprof.instruments.observer import Observer
from anomprof.modes.mode import Mode
from anomprof.replay import Snapshot, Switches, digest
from anomprof.sites import compiled_graph_counts
from anomprof.workload import Workload

#: Steps before the state is kept, so that it holds the optimizer's (lazily made) state.
WARM_UP_STEPS = 3

# A turn settles for one step, or for more where steps are so short that the caches, the clock and the
# processor's memory of branches need several: after the pause between rounds, a step of 0.3 ms took 20 %
# longer at first.
_SETTLING_SECONDS = 0.02


class Bench:
    """A workload with the state from which every turn starts.

    Args:
        workload: Left in the state after its warm-up when the bench is done (:meth:`restore`).
        plain: The baseline mode, for the warm-up steps.

    Raises:
        UserError: The workload's loss is of no use, or its batches are empty or broken.
    """

    def __init__(self, workload: Workload, plain: Mode) -> None:
        self.workload = workload
        graphs_before = compiled_graph_counts()["unique_graphs"]
        parameters = list(workload.model.parameters())
        self.device = parameters[0].device
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.feed = Feed(workload.batches, self.device)
        self.finish = _finish_of(self.device)
        batches = self.feed.start()
        check_loss(workload.loss(workload.model, next(batches)))
        #: The quickest warm-up step: a guide for planning, not a result.
        self.step_seconds = min(self.step(plain, next(batches)).seconds for _ in range(WARM_UP_STEPS))
        if not any(parameter.grad is not None for parameter in self.parameters):
            raise UserError(
                "no parameter gets a gradient from the workload's loss; compute it from the model's output",
                COULD_NOT_MEASURE,
            )
        #: Whether the workload compiles (parts of) itself.
        self.compiles = compiled_graph_counts()["unique_graphs"] > graphs_before
        #: Untimed steps at the start of a turn, the same number for every mode.
        self.settling_steps = max(1, math.ceil(_SETTLING_SECONDS / self.step_seconds))
        self._snapshot = Snapshot(workload.model, workload.optimizer)
        self._switches = Switches.take()

    @property
    def state_bytes(self) -> int:
        """Size of parameters, buffers and optimizer state."""
        return self._snapshot.nbytes

    def restore(self) -> None:
        """Puts the training state back to where every turn starts."""
        self._snapshot.restore()

    @contextlib.contextmanager
    def turn(self, mode: Mode, *, watched: bool = False) -> Iterator[Iterator[Any]]:
        """Restores the state, enters the mode's turn and yields the batches."""
        self.restore()
        mode.watched = watched
        try:
            with mode.turn(self.workload):
                yield self.feed.start()
        finally:
            mode.watched = False
            changed = self._switches.restore()
        if changed:
            raise RuntimeError(f"the mode changed {', '.join(changed)} and did not put it back")

    def step(self, mode: Mode, batch: Any, observer: Observer | None = None) -> StepOutcome:
        """Takes one step; see :func:`anomprof.harness.step.take_step`."""
        return take_step(self.workload, self.parameters, mode, batch, self.finish, observer)

    def digests(self) -> dict[str, str]:
        """Returns the digests of parameters and buffers as they are now."""
        model = self.workload.model
        return {
            "parameters_digest": digest(model.parameters()),
            "buffers_digest": digest(model.buffers()),
        }


def _finish_of(device: torch.device) -> Callable[[], None]:
    if device.type == "cpu":
        return lambda: None
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    if device.type == "mps":
        return torch.mps.synchronize
    raise UserError(
        f"the workload runs on {device.type}, where anomprof cannot tell when a step ends; use cpu or cuda",
        COULD_NOT_MEASURE,
    )
