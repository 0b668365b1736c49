"""A batch that a data loader delivered, and how its samples were made."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from anomprof.guarding import gauge
from anomprof.guarding.tape import tensors_within
from anomprof.replay import RandomState, digest
from anomprof.tracing import arrivals
from anomprof.tracing.looks import is_number

if TYPE_CHECKING:
    from anomprof.guarding.replaying import Replay


class Fetched:
    """What one call of a data loader's fetcher was given: the same samples can be made once more.

    Args:
        fetcher: Makes samples in this process.
        index: Which.
    """

    def __init__(self, fetcher: Any, index: Any) -> None:
        self.fetcher = weakref.ref(fetcher)
        self.index = index
        self.random = RandomState.take()


class FetchAgain:
    """Delivers a batch once more.

    It is the batch that was delivered before. Only if that is bad, and was made in this process, are its
    samples made again, so that the line shows which spoilt them.

    Args:
        replay: Whose trace looks on.
        fetched: How it was made; None where workers made it.
        from_workers: Whether they did.
    """

    def __init__(self, replay: Replay, fetched: Fetched | None, *, from_workers: bool) -> None:
        self._replay = replay
        self._fetched = fetched
        self._from_workers = from_workers

    def __call__(self, batch: Any) -> Any:
        """Returns the batch."""
        tensors = [tensor for tensor in tensors_within(batch) if is_number(tensor)]
        attachment = self._replay.attachment
        if attachment is None or not any(gauge.is_bad(tensor) for tensor in tensors):
            return batch
        tracer = attachment.tracer
        fetcher = self._fetched.fetcher() if self._fetched is not None else None
        if self._fetched is not None and fetcher is not None:
            self._fetched.random.restore()
            with attachment.fetching():
                again = fetcher.fetch(self._fetched.index)
            if _bits(again) == _bits(batch):
                batch = again
        arrivals.look_at_batch(tracer, batch, self._replay.points, from_workers=self._from_workers)
        return batch


def _bits(batch: Any) -> str:
    with torch.no_grad():
        return digest(tensors_within(batch))
