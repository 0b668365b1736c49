"""What a tensor holds: a quick look that says "finite", and a thorough one that counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from anomprof.findings import TensorSummary
from anomprof.sites import functions_are_overridden, without_overrides

_WIDE = frozenset({torch.float32, torch.float64, torch.complex64, torch.complex128})
_HALF = frozenset({torch.float16, torch.bfloat16})
#: Tensors that hold numbers themselves; others consist of several, or of none yet.
PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
#: Types of numbers that can be NaN or Inf and that a sum can be taken of.
LOOKED_AT = _WIDE | _HALF


def is_finite(tensor: torch.Tensor) -> bool:
    """Returns whether all elements are finite, from one sum and one read.

    False may also mean that the sum overflowed: :func:`contents` then says what is true. A sum costs half of
    what the smallest and largest value cost.

    Raises:
        RuntimeError: torch cannot add up this kind of tensor.
    """
    if functions_are_overridden():
        with without_overrides():
            return _is_finite(tensor)
    return _is_finite(tensor)


def _is_finite(tensor: torch.Tensor) -> bool:
    if tensor._is_zerotensor():  # all zeros, without memory: forward-mode differentiation makes them
        return True
    values = tensor.sum(dtype=torch.float32) if tensor.dtype in _HALF else tensor.sum()
    total = values.item()
    return bool(total - total == 0)  # Inf - Inf and NaN - NaN are NaN


@dataclass(frozen=True, slots=True)
class Contents:
    """What was counted in one tensor.

    Attributes:
        nan, plus_inf, minus_inf: How many elements are that.
        low, high: Smallest and largest element that is a number; None where there is none, NaN where there
            may be some but all that is known is that there is a NaN.
        is_counted: Whether all was counted; otherwise one bad element stands for any number.
    """

    shape: tuple[int, ...]
    dtype: str
    nan: int
    plus_inf: int
    minus_inf: int
    low: float | None
    high: float | None
    numel: int
    is_counted: bool = True

    @property
    def inf(self) -> int:
        """How many elements are +Inf or -Inf."""
        return self.plus_inf + self.minus_inf

    @property
    def is_bad(self) -> bool:
        """Whether anything is NaN or Inf."""
        return self.nan + self.plus_inf + self.minus_inf > 0

    def summary(self) -> TensorSummary:
        """Returns it as it stands in a finding."""
        nan = self.nan if self.is_counted or not self.nan else None
        inf = self.inf if self.is_counted or not self.is_bad else None
        return TensorSummary(self.shape, self.dtype, self.low, self.high, nan, inf)


def of_number(value: float) -> Contents:
    """Returns the contents of a plain number, as if it were a tensor of one element."""
    nan, plus, minus = value != value, value == float("inf"), value == float("-inf")
    end = None if nan else value
    return Contents((), "number", int(nan), int(plus), int(minus), end, end, 1)


def contents(tensor: torch.Tensor) -> Contents:
    """Counts what a tensor holds.

    Raises:
        RuntimeError: torch has no way to read this kind of tensor.
    """
    with without_overrides():
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        values = dense(tensor.detach())
        nan = int(values.isnan().sum())
        plus = int((values == float("inf")).sum())
        minus = int((values == float("-inf")).sum())
        numbers = values[~values.isnan()] if nan else values.reshape(-1)
        low = high = None
        if numbers.numel():
            smallest, largest = torch.aminmax(numbers)
            low, high = float(smallest), float(largest)
        return Contents(shape, dtype, nan, plus, minus, low, high, values.numel())


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the stored real numbers of a tensor of any layout and number type."""
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()
    elif tensor.layout is not torch.strided:
        tensor = tensor.values()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype not in LOOKED_AT and tensor.is_floating_point():
        tensor = tensor.float()  # the 8-bit types have no comparisons of their own
    return tensor


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors in nested lists, tuples, dicts and dataclass-like outputs, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_in(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_in(inner)


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns all elements of a tensor's memory."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return torch.as_strided(tensor.detach(), (count,), (1,), 0)
