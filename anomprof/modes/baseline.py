"""The plain step, and the plain step again as a control."""

from __future__ import annotations

import torch

from anomprof.modes.mode import Mode, Proof, Seen


class Baseline(Mode):
    """Nothing added."""

    name = "baseline"
    summary = "the plain step, with which all others are compared"
    keeps_numbers = True
    family = "baseline"

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Shows that none of the switches that other modes turn on is on."""
        low = [dtype for dtype in ("torch.bfloat16", "torch.float16") if seen.float_outputs.get(dtype)]
        if seen.nodes_with_stack or torch.is_anomaly_enabled():
            return Proof(False, "anomaly mode was on: the workload switches it on itself")
        text = f"{seen.nodes} autograd nodes, none with a stack"
        if low:
            text += f"; the model itself computes in {', '.join(d.removeprefix('torch.') for d in low)}"
        return Proof(True, text)


class BaselineAgain(Baseline):
    """The baseline under a second name: shows what the method makes of no difference at all."""

    name = "baseline-again"
    summary = "the baseline once more (A/A): must show no difference"
