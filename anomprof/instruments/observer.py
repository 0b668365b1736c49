"""Watches one untimed step: which ops ran in which pass, in which precision."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from anomprof.sites import DispatchMode, op_name


class Observer(DispatchMode):  # type: ignore[misc]  # torch gives its base class no types
    """Counts every op below autograd while it is entered.

    Anomaly mode's checks, autocast's casts and recomputed ops all pass here, whatever wrote them.

    Attributes:
        phase: Set by the step: ``"forward"``, ``"backward"`` or ``"optimizer"``.
        calls: (phase, op) -> calls.
        float_outputs: dtype -> number of floating-point tensors returned, in forward and backward.
        nodes: Autograd nodes below the loss.
        nodes_with_stack: Those with a Python stack in their metadata.
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase = "forward"
        self.calls: Counter[tuple[str, str]] = Counter()
        self.float_outputs: Counter[str] = Counter()
        self.nodes = 0
        self.nodes_with_stack = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the op and counts it."""
        out = func(*args, **(kwargs or {}))
        self.calls[self.phase, op_name(func)] += 1
        if self.phase != "optimizer":
            for value in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    self.float_outputs[str(value.dtype)] += 1
        return out

    def graph(self, loss: torch.Tensor) -> None:
        """Counts the autograd nodes below the loss; called between forward and backward."""
        seen: set[Any] = set()
        todo: list[Any] = [loss.grad_fn]
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            todo.extend(parent for parent, _ in node.next_functions)
        self.nodes = len(seen)
        # Node.metadata is where anomaly mode keeps the stack that it later prints.
        self.nodes_with_stack = sum("traceback_" in node.metadata for node in seen)
        self.phase = "backward"

    def backward_done(self) -> None:
        """What follows belongs to the optimizer."""
        self.phase = "optimizer"

    def of_phase(self, phase: str) -> dict[str, int]:
        """Returns op -> calls within one phase."""
        return {op: calls for (where, op), calls in self.calls.items() if where == phase}
