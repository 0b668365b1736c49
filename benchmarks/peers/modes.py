"""Other projects' tools as modes of ``bench``: python -m anomprof bench mlp --modes peers/modes.py:Sherlorch.

They are installed for this benchmark only: pip install sherlorch transformers
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

import torch

from anomprof import Mode, Proof, Workload
from anomprof.modes.mode import Seen

_CHECK = "aten::isnan"


class Peer(Mode):
    """A tool that calls torch.isnan on what it sees in the forward pass.

    Attributes:
        package: Where it comes from.
    """

    keeps_numbers = True
    package = ""

    def unavailable(self, device: torch.device) -> str | None:
        """Says how to install what is missing."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed; 'python -m pip install {self.package}' installs it"
        return None

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Counts the checks of the forward pass."""
        checks = seen.forward_ops.get(_CHECK, 0) - baseline.forward_ops.get(_CHECK, 0)
        return Proof(checks > 0, f"{checks} tensors checked for NaN in forward")


class Transformers(Peer):
    """``transformers.debug_utils.DebugUnderflowOverflow``."""

    name = "transformers"
    summary = "transformers' DebugUnderflowOverflow on the model"
    package = "transformers"

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Attaches it to the model for a turn."""
        from transformers.debug_utils import DebugUnderflowOverflow

        # It keeps no handles of its hooks, so that they have to be taken out by hand.
        before = {module: set(module._forward_hooks) for module in workload.model.modules()}
        DebugUnderflowOverflow(workload.model)
        try:
            yield
        finally:
            for module, kept in before.items():
                for added in set(module._forward_hooks) - kept:
                    del module._forward_hooks[added]


class Sherlorch(Peer):
    """``sherlorch.trace()`` around the step, as its README begins.

    This names ops, but neither lines nor modules. With ``capture_stack=True`` each op costs an
    ``inspect.stack()``, whose price depends on how deep the caller is nested; within ``bench`` that is
    deeper than in a script, so that it would not be a fair measurement.
    """

    name = "sherlorch"
    summary = "sherlorch.trace() around each step"
    package = "sherlorch"

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Traces one step."""
        import sherlorch

        with sherlorch.trace():
            yield
