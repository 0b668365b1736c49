"""Looks at tensors of any kind, and counts those that cannot be looked at."""

from __future__ import annotations

from collections import Counter

import torch

from anomprof.tracing.contents import PLAIN_TENSORS, Contents, contents, is_finite


class Looks:
    """Looks that never raise.

    Attributes:
        failed: What could not be looked at: kind of tensor -> how often.
    """

    def __init__(self) -> None:
        self.failed: Counter[str] = Counter()

    def thorough(self, tensor: torch.Tensor) -> Contents | None:
        """Counts what a tensor holds; None where that is impossible."""
        try:
            if type(tensor) in PLAIN_TENSORS and tensor.device.type != "meta" and not tensor._is_zerotensor():
                return contents(tensor)
        except Exception:  # what kind of tensor it is decides what it raises
            self.failed[_kind(tensor)] += 1
        return None

    def if_bad(self, tensor: torch.Tensor) -> Contents | None:
        """Counts what a tensor holds if something in it is bad."""
        if type(tensor) not in PLAIN_TENSORS:
            return None
        try:
            if is_finite(tensor):
                return None
        except Exception:  # it has no sum; counting may still be possible
            pass
        held = self.thorough(tensor)
        return held if held is not None and held.is_bad else None

    def is_bad(self, tensor: torch.Tensor) -> bool:
        """Looks at a tensor that has no sum."""
        held = self.thorough(tensor)
        return held is not None and held.is_bad


def is_number(tensor: torch.Tensor) -> bool:
    """Whether a tensor's elements can be NaN or Inf."""
    return tensor.is_floating_point() or tensor.is_complex()


def _kind(tensor: torch.Tensor) -> str:
    layout = str(tensor.layout).removeprefix("torch.")
    kind = f"{layout} {str(tensor.dtype).removeprefix('torch.')}"
    return f"{kind} tensors on {tensor.device.type}"
