"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from anomprof.modes.mode import Mode, ModeOptions, Proof, Seen
from anomprof.workload import Workload


class ClipNorm(Mode):
    """``clip_grad_norm_`` over all parameters, the 2-norm."""

    name = "clip-norm"
    summary = "gradients scaled down to a norm (--clip-norm)"
    family = "clip-norm"
    rank = 60

    def __init__(self, options: ModeOptions) -> None:
        super().__init__(options)
        self._norms: list[torch.Tensor] = []

    def turn(self, workload: Workload) -> AbstractContextManager[None]:
        """Starts counting afresh."""
        self._norms = []
        return super().turn(workload)

    def gradients(self, parameters: Sequence[torch.Tensor]) -> None:
        """Clips by the norm."""
        norm = clip_grad_norm_(parameters, self.options.clip_norm)
        if self.watched:
            self._norms.append(norm.detach())

    def figures(self) -> Mapping[str, Any]:
        """Returns how many steps were clipped and the median norm."""
        if not self._norms:
            return {}
        norms = torch.stack(self._norms).double().cpu()
        return {
            "clip_norm": self.options.clip_norm,
            "norms_computed": len(norms),
            "clipped_share": float((norms > self.options.clip_norm).double().mean()),
            "median_norm": float(norms.median()),
            "nonfinite_norms": int((~torch.isfinite(norms)).sum()),
        }

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Shows the norms."""
        norms = int(seen.figures.get("norms_computed", 0))
        if not norms:
            return Proof(False, "no gradient norm was computed")
        share = seen.figures["clipped_share"]
        text = (
            f"norm of {seen.gradients} gradients computed (median {seen.figures['median_norm']:.3g}), "
            f"above {self.options.clip_norm:g} in {share:.0%} of the observed steps"
        )
        if seen.figures["nonfinite_norms"]:
            text += f"; {seen.figures['nonfinite_norms']} of {norms} norms were NaN or Inf"
        return Proof(seen.gradients > 0, text)


class ClipValue(Mode):
    """``clip_grad_value_`` on every element."""

    name = "clip-value"
    summary = "gradient elements cut to a range (--clip-value)"
    family = "clip-value"
    rank = 55

    def __init__(self, options: ModeOptions) -> None:
        super().__init__(options)
        self._steps = self._clipped_steps = self._elements = self._clipped_elements = 0

    def turn(self, workload: Workload) -> AbstractContextManager[None]:
        """Starts counting afresh."""
        self._steps = self._clipped_steps = self._elements = self._clipped_elements = 0
        return super().turn(workload)

    def gradients(self, parameters: Sequence[torch.Tensor]) -> None:
        """Clips each element."""
        if self.watched:
            self._count(parameters)
        clip_grad_value_(parameters, self.options.clip_value)

    def _count(self, parameters: Sequence[torch.Tensor]) -> None:
        grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
        beyond = sum(int((grad.abs() > self.options.clip_value).sum()) for grad in grads)
        self._steps += 1
        self._clipped_steps += beyond > 0
        self._elements += sum(grad.numel() for grad in grads)
        self._clipped_elements += beyond

    def figures(self) -> Mapping[str, Any]:
        """Returns how many steps and elements were clipped."""
        if not self._steps:
            return {}
        return {
            "clip_value": self.options.clip_value,
            "steps_seen": self._steps,
            "clipped_share": self._clipped_steps / self._steps,
            "clipped_element_share": self._clipped_elements / max(1, self._elements),
        }

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Counts clamping ops that the baseline does not make."""
        # clip_grad_value_ clamps list by list where it can (_foreach_clamp_*), else tensor by tensor.
        clamps = sum(calls for op, calls in seen.op_calls.items() if "clamp" in op)
        clamps -= sum(calls for op, calls in baseline.op_calls.items() if "clamp" in op)
        if clamps <= 0 or not seen.figures:
            return Proof(False, "no clamp of a gradient was seen")
        text = (
            f"{seen.gradients} gradients clamped in {clamps} calls, some element beyond "
            f"{self.options.clip_value:g} in {seen.figures['clipped_share']:.0%} of the observed steps"
        )
        return Proof(True, text)
