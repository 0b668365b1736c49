"""torch's anomaly mode, and its first half alone."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from anomprof.modes.mode import Mode, Proof, Seen

_CHECK = "aten::isnan"


def _checks(seen: Seen, baseline: Seen) -> int:
    """NaN checks in the backward pass beyond those that the model's own code makes."""
    if not seen.backward_ops:  # a workload that compiles itself is not watched; its profile shows the checks
        return seen.op_calls.get(_CHECK, 0) - baseline.op_calls.get(_CHECK, 0)
    return seen.backward_ops.get(_CHECK, 0) - baseline.backward_ops.get(_CHECK, 0)


class Anomaly(Mode):
    """``torch.autograd.set_detect_anomaly(True)``."""

    name = "anomaly"
    summary = "torch's anomaly mode: stacks and NaN checks"
    keeps_numbers = True
    family = "anomaly"

    def step(self) -> AbstractContextManager[None]:
        """Switches anomaly mode on for one step."""
        return torch.autograd.set_detect_anomaly(True)

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Counts the NaN checks and the nodes that carry a stack."""
        checks = _checks(seen, baseline)
        text = (
            f"{checks} gradients checked for NaN, {seen.nodes_with_stack} of {seen.nodes} nodes with a stack"
        )
        return Proof(checks > 0 and seen.nodes_with_stack > 0, text)


class AnomalyStacks(Mode):
    """``torch.autograd.set_detect_anomaly(True, check_nan=False)``."""

    name = "anomaly-stacks"
    summary = "anomaly mode without its NaN checks"
    keeps_numbers = True
    family = "anomaly"

    def step(self) -> AbstractContextManager[None]:
        """Switches the stack-taking half on for one step."""
        return torch.autograd.set_detect_anomaly(True, check_nan=False)

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Counts the nodes that carry a stack, and shows that nothing was checked."""
        checks = _checks(seen, baseline)
        text = (
            f"{seen.nodes_with_stack} of {seen.nodes} nodes with a stack, {checks} gradients checked for NaN"
        )
        return Proof(checks == 0 and seen.nodes_with_stack > 0, text)
