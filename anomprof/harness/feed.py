"""Hands out a workload's batches, the same ones in every turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from anomprof.errors import UserError
from anomprof.userfile import raised


class Feed:
    """Iterates a workload's batches again and again, on the model's device.

    They are iterated afresh in each turn, by the workers of a loader too, and start over where a turn
    takes more steps than there are batches.
    """

    def __init__(self, batches: Iterable[Any], device: torch.device) -> None:
        self._device = device
        self._batches = batches
        # A loader may draw from generators of its own, which no snapshot of the global ones holds.
        owners = (batches, getattr(batches, "sampler", None))
        found = [getattr(owner, "generator", None) for owner in owners]
        self._generators = [(one, one.get_state()) for one in found if isinstance(one, torch.Generator)]

    def start(self) -> Iterator[Any]:
        """Yields batches without end.

        Raises:
            UserError: There is no batch, or the workload's data raised.
        """
        for generator, state in self._generators:
            generator.set_state(state)
        while True:
            count = 0
            source = iter(self._batches)
            while True:
                try:
                    batch = move(next(source), self._device)
                except StopIteration:
                    break
                except Exception as error:
                    raise raised(error, f"fetching batch {count} of the workload's data") from error
                yield batch
                count += 1
            if not count:
                raise UserError("the workload's batches are empty; give at least one batch")


def move(batch: Any, device: torch.device) -> Any:
    """Returns the batch with its tensors on the device; containers keep their types."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if callable(getattr(batch, "to", None)):  # a batch class of the user's, or of a library
        return batch.to(device)
    if isinstance(batch, Mapping):
        moved = {key: move(value, device) for key, value in batch.items()}
        try:
            return type(batch)(moved)  # type: ignore[call-arg]
        except TypeError:  # a defaultdict takes a factory first
            return moved
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device) for value in batch)
    return batch
