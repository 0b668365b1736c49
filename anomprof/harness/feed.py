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

    def start(self) -> Iterator[Any]:
        """Yields batches without end.

        Raises:
            UserError: There is no batch, or the workload's data raised.
        """
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
    if isinstance(batch, Mapping):
        return type(batch)({key: move(value, device) for key, value in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device) for value in batch)
    return batch
