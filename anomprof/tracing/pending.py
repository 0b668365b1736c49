"""Looks whose numbers stay on the device: one read per backward, then all is gone through in order.

On an accelerator, reading a number makes the host wait for everything before it. So each op leaves its
smallest and largest value there, with a few hundred bytes about the op, and no tensor is kept alive.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from anomprof.sites import (
    StorageReference,
    functions_are_overridden,
    memory_is_filled_by,
    modes_entered,
    storage_key,
    without_modes,
    without_overrides,
)
from anomprof.tracing.contents import LOOKED_AT, PLAIN_TENSORS, Contents
from anomprof.tracing.looks import Looks, is_number
from anomprof.tracing.scene import Scene
from anomprof.tracing.sight import Seen, Sight
from anomprof.tracing.steps import Moment

if TYPE_CHECKING:
    from anomprof.tracing.tracer import Tracer

_MOST_PENDING = 20_000  # ops; a loop that never runs backward is read in between


_UNKNOWN: tuple[None, None] = (None, None)


class Reading:
    """Smallest and largest value of one tensor, on their way from the device.

    Attributes:
        low, high: NaN where the tensor holds one; None where there is nothing to read.
    """

    __slots__ = ("high", "low")

    def __init__(self) -> None:
        self.low: float | None = None
        self.high: float | None = None

    @property
    def is_bad(self) -> bool:
        """Whether either is NaN or Inf."""
        return self.low is not None and not (math.isfinite(self.low) and math.isfinite(self.high or 0.0))

    def contents(self, shape: tuple[int, ...], dtype: str, numel: int) -> Contents:
        """Returns what is known of the tensor; how many elements are bad is not."""
        low, high = self.low, self.high
        nan, plus, minus = (
            int(low is not None and math.isnan(low)),
            int(high == math.inf),
            int(low == -math.inf),
        )
        return Contents(shape, dtype, nan, plus, minus, low, high, numel, is_counted=False)


class Remembered(Seen):
    """A tensor that may be gone by the time its reading is there."""

    __slots__ = (
        "_dtype",
        "_fills",
        "_key",
        "_memory",
        "_needs_grad",
        "_reading",
        "_shape",
        "_version",
        "_weak",
    )

    def __init__(
        self,
        tensor: torch.Tensor,
        looks: Looks,
        reading: Reading,
        key: int | None,
        memory: StorageReference | None,
        fills: bool,
    ) -> None:
        self._looks = looks
        self._held = None
        self._is_counted = False
        self._weak = weakref.ref(tensor)
        self._version = _version(tensor)
        self._reading = reading
        self._shape, self._dtype = tensor.shape, tensor.dtype
        self._needs_grad = tensor.requires_grad
        self._key, self._memory, self._fills = key, memory, fills

    @property
    def held(self) -> Contents | None:
        """What it holds: counted if it still exists as it was, else what was read."""
        if not self._is_counted:
            live, self._is_counted = self.live, True
            if self._reading.is_bad and live is not None and self._version == _version(live) is not None:
                self._held = self._looks.thorough(live)
            if self._held is None:
                self._held = self._reading.contents(
                    tuple(self._shape), str(self._dtype).removeprefix("torch."), self.numel
                )
        return self._held

    @property
    def if_bad(self) -> Contents | None:
        """What it holds, if something in it is bad."""
        return self.held if self._reading.is_bad else None

    @property
    def live(self) -> torch.Tensor | None:
        """The tensor, if it still exists."""
        return self._weak()

    @property
    def is_number(self) -> bool:
        """Whether its elements can be NaN or Inf."""
        return self._dtype.is_floating_point or self._dtype.is_complex

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through it."""
        return self._needs_grad

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return self._shape.numel()

    @property
    def key(self) -> int | None:
        """What tensors sharing its memory have in common."""
        return self._key

    def memory(self) -> StorageReference | None:
        """Returns a weak reference to its memory; None for one that is gone."""
        if self._memory is None and self.live is not None:
            return StorageReference(self.live)
        return self._memory

    def memory_is_finite(self) -> bool:
        """Whether all its memory is known to be finite."""
        return self._fills

    def is_zero(self) -> bool:
        """Whether all its elements are 0."""
        return self._reading.low == 0 == self._reading.high

    def holds_only(self, first: float, second: float) -> bool:
        """Whether smallest and largest element are these two: all that is known without the tensor."""
        ends = (self._reading.low, self._reading.high)
        return ends == (min(first, second), max(first, second))


class Pending:
    """What waits for its readings, in order.

    Args:
        tracer: Whose judgement is asked when they are there.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._entries: list[tuple[Sight, Scene] | tuple[Callable[[], None], Moment]] = []
        self._readings: list[tuple[Reading, torch.Tensor, torch.Tensor]] = []
        self._is_bad = False
        self._latest: dict[int, tuple[StorageReference, Reading | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, sight: Sight, scene: Scene) -> None:
        """An op has run."""
        scene.locate(quickly=True)
        self._entries.append((sight, scene))
        if len(self._entries) >= _MOST_PENDING:
            self.flush()

    def later(self, check: Callable[[], None]) -> None:
        """Something is to be checked once all before it is known."""
        self._entries.append((check, self._tracer.steps.now()))

    def given(self, tensor: torch.Tensor) -> Remembered:
        """Remembers a tensor that an op was given; read only if it was not when it was made."""
        key, fills = _memory_of(tensor)
        memory, reading = self._latest.get(key, _UNKNOWN) if key is not None else _UNKNOWN
        if fills and reading is not None:
            return Remembered(tensor, self._tracer.looks, reading, key, memory, fills)
        return self._seen(tensor, key, fills)

    def made(self, tensor: torch.Tensor) -> Remembered:
        """Remembers a tensor that an op has made or written."""
        return self._seen(tensor, *_memory_of(tensor))

    def _seen(self, tensor: torch.Tensor, key: int | None, fills: bool) -> Remembered:
        reading = self._read(tensor)
        memory: StorageReference | None = None
        if key is not None:
            known = self._latest.pop(key, None)
            # While it is referred to, the same address is not given out again.
            memory = StorageReference(tensor) if known is None else known[0]
            self._latest[key] = (memory, reading if fills else None)
        return Remembered(tensor, self._tracer.looks, reading, key, memory, fills)

    def flush(self) -> None:
        """Reads all numbers at once, and goes through what happened if anything was bad."""
        if not self._entries:
            return
        tracer = self._tracer
        entries, self._entries = self._entries, []  # first: other threads append an entry after its readings
        if self._fetch() or tracer.marks:
            for what, when in entries:
                if tracer.has_failed:
                    break
                tracer.steps.recalled = when.moment if isinstance(when, Scene) else when
                try:
                    if isinstance(what, Sight) and isinstance(when, Scene):
                        self._judge(what, when)
                    elif callable(what):
                        what()
                finally:
                    tracer.steps.recalled = None
        tracer.marks.forget_freed()
        self._latest = {key: known for key, known in self._latest.items() if not known[0].is_freed}

    def _judge(self, sight: Sight, scene: Scene) -> None:
        if any(seen.if_bad is not None for seen in sight.answers):
            self._tracer.found_bad(sight, scene)
        elif self._tracer.marks:
            self._tracer.found_finite(sight, scene)

    def _read(self, tensor: torch.Tensor) -> Reading:
        reading = Reading()
        if not is_number(tensor) or not tensor.numel() or type(tensor) not in PLAIN_TENSORS or tensor.is_meta:
            return reading
        if not _can_stay(tensor):
            with without_modes(), without_overrides():
                held = self._tracer.looks.if_bad(tensor)
            if held is not None:
                self._is_bad = True
                reading.low = math.nan if held.nan else held.low
                reading.high = math.nan if held.nan else held.high
        elif functions_are_overridden() or modes_entered():
            with without_modes(), without_overrides():
                self._readings.append((reading, *_ends(tensor)))
        else:
            self._readings.append((reading, *_ends(tensor)))
        return reading

    def _fetch(self) -> bool:
        """Reads the numbers, and returns whether any is bad."""
        (readings, self._readings), (is_bad, self._is_bad) = (self._readings, []), (self._is_bad, False)
        alike: dict[tuple[torch.device, torch.dtype], list[tuple[Reading, torch.Tensor, torch.Tensor]]] = {}
        for entry in readings:
            alike.setdefault((entry[1].device, entry[1].dtype), []).append(entry)
        with without_modes(), without_overrides():
            for together in alike.values():
                numbers = [number for _, low, high in together for number in (low, high)]
                values = torch.stack(numbers).tolist()
                for (reading, _, _), low, high in zip(together, values[::2], values[1::2], strict=True):
                    reading.low, reading.high = low, high
                    is_bad = is_bad or reading.is_bad
        return is_bad


def _can_stay(tensor: torch.Tensor) -> bool:
    is_plain = tensor.layout is torch.strided and not tensor._is_zerotensor()
    return is_plain and tensor.dtype in LOOKED_AT


def _ends(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values = tensor.detach() if tensor.requires_grad else tensor
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    low, high = torch.aminmax(values)
    return low, high


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _memory_of(tensor: torch.Tensor) -> tuple[int | None, bool]:
    """Returns the key of a tensor's memory, and whether it takes up all of it."""
    try:
        return storage_key(tensor), memory_is_filled_by(tensor)
    except (RuntimeError, NotImplementedError):  # sparse tensors have no one memory
        return None, True
