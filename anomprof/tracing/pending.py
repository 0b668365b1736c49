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
    memory_is_filled_by,
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
        "_is_number",
        "_memory",
        "_needs_grad",
        "_reading",
        "_shape",
        "_version",
        "_weak",
    )

    def __init__(self, tensor: torch.Tensor, looks: Looks, reading: Reading, fills: bool) -> None:
        self._looks = looks
        self._held = None
        self._is_counted = False
        self._weak = weakref.ref(tensor)
        self._version = _version(tensor)
        self._reading = reading
        self._shape, self._dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        self._needs_grad, self._is_number = tensor.requires_grad, is_number(tensor)
        self._fills = fills
        try:
            self._memory: StorageReference | None = StorageReference(tensor)
        except (RuntimeError, NotImplementedError):  # sparse tensors have no one memory
            self._memory = None

    @property
    def held(self) -> Contents | None:
        """What it holds: counted if it still exists as it was, else what was read."""
        if not self._is_counted:
            live, self._is_counted = self.live, True
            if self._reading.is_bad and live is not None and self._version == _version(live) is not None:
                self._held = self._looks.thorough(live)
            if self._held is None:
                self._held = self._reading.contents(self._shape, self._dtype, self.numel)
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
        return self._is_number

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through it."""
        return self._needs_grad

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return math.prod(self._shape)

    @property
    def key(self) -> int | None:
        """What tensors sharing its memory have in common."""
        return None if self._memory is None else self._memory.key

    def memory(self) -> StorageReference:
        """Returns a weak reference to its memory."""
        assert self._memory is not None
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
        self._latest: dict[int, tuple[StorageReference, Reading]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, sight: Sight, scene: Scene) -> None:
        """An op has run."""
        scene.locate()
        self._entries.append((sight, scene))
        if len(self._entries) >= _MOST_PENDING:
            self.flush()

    def later(self, check: Callable[[], None]) -> None:
        """Something is to be checked once all before it is known."""
        self._entries.append((check, self._tracer.steps.now()))

    def given(self, tensor: torch.Tensor) -> Remembered:
        """Remembers a tensor that an op was given; read only if it was not when it was made."""
        fills, key = _fills(tensor), _key(tensor)
        known = self._latest.get(key) if fills and key is not None else None
        return Remembered(
            tensor, self._tracer.looks, known[1] if known else self._read(tensor, key, fills), fills
        )

    def made(self, tensor: torch.Tensor) -> Remembered:
        """Remembers a tensor that an op has made or written."""
        fills, key = _fills(tensor), _key(tensor)
        if key is not None:
            self._latest.pop(key, None)
        return Remembered(tensor, self._tracer.looks, self._read(tensor, key, fills), fills)

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

    def _read(self, tensor: torch.Tensor, key: int | None, fills: bool) -> Reading:
        reading = Reading()
        if is_number(tensor) and tensor.numel() and type(tensor) in PLAIN_TENSORS and not tensor.is_meta:
            with without_modes(), without_overrides():
                if (
                    tensor.dtype in LOOKED_AT
                    and tensor.layout is torch.strided
                    and not tensor._is_zerotensor()
                ):
                    plain = tensor.detach()
                    values = torch.view_as_real(plain.resolve_conj()) if plain.is_complex() else plain
                    low, high = torch.aminmax(values)
                    self._readings.append((reading, low.double(), high.double()))
                elif (held := self._tracer.looks.if_bad(tensor)) is not None:
                    self._is_bad = True
                    reading.low = math.nan if held.nan else held.low
                    reading.high = math.nan if held.nan else held.high
        if fills and key is not None:
            self._latest[key] = (StorageReference(tensor), reading)
        return reading

    def _fetch(self) -> bool:
        """Reads the numbers, and returns whether any is bad."""
        (readings, self._readings), (is_bad, self._is_bad) = (self._readings, []), (self._is_bad, False)
        by_device: dict[torch.device, list[tuple[Reading, torch.Tensor, torch.Tensor]]] = {}
        for entry in readings:
            by_device.setdefault(entry[1].device, []).append(entry)
        with without_modes(), without_overrides():
            for together in by_device.values():
                numbers = [number for _, low, high in together for number in (low, high)]
                values = torch.stack(numbers).tolist()
                for (reading, _, _), low, high in zip(together, values[::2], values[1::2], strict=True):
                    reading.low, reading.high = low, high
                    is_bad = is_bad or reading.is_bad
        return is_bad


def _can_stay(tensor: torch.Tensor) -> bool:
    is_plain = tensor.layout is torch.strided and not tensor._is_zerotensor()
    return is_plain and tensor.dtype in LOOKED_AT


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _key(tensor: torch.Tensor) -> int | None:
    try:
        return storage_key(tensor)
    except (RuntimeError, NotImplementedError):  # sparse tensors have no one memory
        return None


def _fills(tensor: torch.Tensor) -> bool:
    try:
        return memory_is_filled_by(tensor)
    except (RuntimeError, NotImplementedError):
        return True
