"""Hands out a workload's batches, the same ones in every turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.userfile import describe

#: So many batches of a generator are kept; they repeat where a turn takes more steps.
KEPT_FROM_GENERATOR = 8


class Feed:
    """Iterates a workload's batches again and again, on the model's device.

    A generator can be read only once, so its first batches are kept. All else is iterated afresh
    in each turn, loader workers included, and starts over where a turn is longer.
    """

    def __init__(self, batches: Iterable[Any], device: torch.device) -> None:
        self._device = device
        if isinstance(batches, Iterator):
            with _named("reading the first batches"):
                batches = list(itertools.islice(batches, KEPT_FROM_GENERATOR))
        self._batches = batches

    def start(self) -> Iterator[Any]:
        """Yields batches without end.

        Raises:
            UserError: There is no batch, or the workload's data raised.
        """
        while True:
            count = 0
            source = iter(self._batches)
            while True:
                with _named(f"fetching batch {count}"):
                    try:
                        batch = next(source)
                    except StopIteration:
                        break
                    moved = move(batch, self._device)
                yield moved
                count += 1
            if not count:
                raise UserError("the workload's batches are empty; give at least one batch")


class _named:
    """Turns an exception of the user's data into one sentence."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, UserError):
            raise UserError(
                f"{self._doing} failed: {describe(error)}; fix the workload's data", COULD_NOT_MEASURE
            ) from error


def move(batch: Any, device: torch.device) -> Any:
    """Returns the batch with its tensors on the device; containers keep their types."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return type(batch)({key: move(value, device) for key, value in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device) for value in batch)
    return batch
