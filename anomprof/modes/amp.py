"""Automatic mixed precision."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import torch

from anomprof.modes.mode import Mode, ModeOptions, NoScaler, Proof, Seen
from anomprof.workload import Workload


class Autocast(Mode):
    """Autocast of the forward pass and the loss; the base of both precisions."""

    family = "autocast"
    rank = 30
    dtype: ClassVar[torch.dtype]

    def __init__(self, options: ModeOptions) -> None:
        super().__init__(options)
        self._device_type = "cpu"

    def unavailable(self, device: torch.device) -> str | None:
        """Asks torch whether it can autocast there."""
        if not torch.amp.is_autocast_available(device.type):
            return f"torch has no autocast on {device.type}"
        if device.type == "cuda" and self.dtype is torch.bfloat16 and not torch.cuda.is_bf16_supported():
            return "this GPU cannot compute in bfloat16"
        return None

    def unfit(self, workload: Workload) -> str | None:
        """Autocast changes only what would run in float32."""
        floats = {p.dtype for p in workload.model.parameters() if p.is_floating_point()}
        if torch.float32 not in floats:
            names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in floats))
            return f"autocast acts on float32 only, and the parameters are {names or 'not floating-point'}"
        return None

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Finds the device."""
        self._device_type = next(workload.model.parameters()).device.type
        yield

    def forward(self) -> AbstractContextManager[None]:
        """Switches autocast on for the forward pass."""
        return torch.autocast(self._device_type, dtype=self.dtype)

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Counts the op outputs in the low precision that the baseline does not have."""
        low = seen.float_outputs.get(str(self.dtype), 0) - baseline.float_outputs.get(str(self.dtype), 0)
        every = sum(seen.float_outputs.values())
        name = str(self.dtype).removeprefix("torch.")
        return Proof(low > 0, f"{low} of {every} floating-point op outputs in {name}")


class AmpBf16(Autocast):
    """bfloat16 has float32's range, so gradients need no scaling."""

    name = "amp-bf16"
    summary = "autocast to bfloat16"
    dtype = torch.bfloat16


class _SearchingScaler(torch.amp.GradScaler):
    """A GradScaler that counts skipped steps and looks for a scale that works in long strides.

    Used in the watched pass only. torch's own halves the scale at each skipped step, which would take
    more steps than a slow device has time for.
    """

    def __init__(self, device: str, init_scale: float) -> None:
        super().__init__(device, init_scale=init_scale)
        self.skipped = 0
        self.steps = 0
        self.last_was_skipped = False

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """Adapts the scale; it becomes smaller only when a step was skipped."""
        before = self.get_scale()
        super().update(new_scale)
        self.last_was_skipped = self.get_scale() < before
        self.steps += 1
        if self.last_was_skipped:
            self.skipped += 1
            super().update(before / _STRIDE)


_STRIDE = 32.0


class AmpFp16(Autocast):
    """float16 needs its gradients scaled.

    The watched pass starts from torch's default scale and goes on until a step is not skipped; the
    timed turns start, each time, from the scale that was found, as in training after its first steps.
    """

    name = "amp-fp16"
    summary = "autocast to float16 with a GradScaler"
    dtype = torch.float16

    _DEFAULT_SCALE = 65536.0

    def __init__(self, options: ModeOptions) -> None:
        super().__init__(options)
        self._start_scale = self._DEFAULT_SCALE

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Makes the turn's scaler."""
        with super().turn(workload):
            kind = _SearchingScaler if self.watched else torch.amp.GradScaler
            scaler = kind(self._device_type, init_scale=self._start_scale)
            self.scaler = scaler
            try:
                yield
            finally:
                if self.watched:
                    self._start_scale = scaler.get_scale()
                self.scaler = NoScaler()

    def settled(self) -> bool:
        """Whether the last step was not skipped, or no scale would help."""
        scaler = self.scaler
        return not (
            isinstance(scaler, _SearchingScaler) and scaler.last_was_skipped and scaler.get_scale() > 1
        )

    def figures(self) -> Mapping[str, Any]:
        """Returns the scale and the number of skipped steps."""
        if not isinstance(self.scaler, _SearchingScaler):
            return {}
        return {
            "scale_at_start": self._DEFAULT_SCALE,
            "scale": self.scaler.get_scale(),
            "skipped_steps": self.scaler.skipped,
            "steps_seen": self.scaler.steps,
            "last_step_skipped": self.scaler.last_was_skipped,
        }

    def turn_figures(self) -> Mapping[str, float]:
        """Counts the steps skipped in a timed turn: each halved the scale."""
        scale = getattr(self.scaler, "get_scale", lambda: self._start_scale)()
        return {"skipped_steps": max(0, round(math.log2(self._start_scale / scale)))} if scale > 0 else {}

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Adds the scaler's figures."""
        precision = super().proof(seen, baseline)
        steps = seen.figures.get("steps_seen", 0)
        if not steps:
            return Proof(False, f"{precision.text}; the gradients were not scaled")
        text = (
            f"{precision.text}; scale {seen.figures['scale']:g}, "
            f"{seen.figures['skipped_steps']} of {steps} observed steps skipped"
        )
        if seen.figures["last_step_skipped"]:
            return Proof(False, f"{text}: no scale was found at which the gradients are finite")
        return Proof(precision.applied, text)
