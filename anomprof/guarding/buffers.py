"""The buffers of the models, as they were when the step began."""

from __future__ import annotations

import weakref

import torch
from torch import nn

from anomprof.guarding import gauge
from anomprof.sites import copy_all

_SETTLED = 2  # steps after which a buffer that has not changed is taken for a constant


class Buffers:
    """Copies of the buffers that training changes: statistics of batch norms, queues, codebooks.

    Which they are shows in the first steps; masks and tables stay what they are and are not copied.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._live: list[torch.Tensor] = []
        self._copies: list[torch.Tensor] = []
        self._changed: set[int] = set()
        self._age = 0

    def add(self, model: nn.Module) -> None:
        """A model is about to be called; its buffers are as they are at the start of a step."""
        if model in self._known:
            return
        self._known.add(model)
        held = {id(buffer) for buffer in self._live}
        for buffer in model.buffers():
            if id(buffer) not in held:
                self._live.append(buffer)
                self._copies.append(buffer.detach().clone())
        self._age = 0

    def changing(self) -> list[torch.Tensor]:
        """Returns the buffers with numbers that may be NaN or Inf, among those that change."""
        return [buffer for buffer in self._live if buffer.is_floating_point() or buffer.is_complex()]

    def spoilt(self) -> list[torch.Tensor]:
        """Returns the buffers that hold a bad value and did not when the step began: masks may hold -inf."""
        return [
            live
            for live, copy in zip(self._live, self._copies, strict=True)
            if gauge.is_bad(live) and not gauge.is_bad(copy)
        ]

    def keep(self) -> None:
        """A step has begun: what buffers hold now is what it starts from."""
        if not self._live:
            return
        with torch.no_grad():
            if self._age < _SETTLED:
                self._age += 1
                for live, copy in zip(self._live, self._copies, strict=True):
                    if id(live) not in self._changed and not torch.equal(live, copy):
                        self._changed.add(id(live))
                if self._age == _SETTLED:
                    self._forget_constants()
            if self._live:
                copy_all(self._copies, self._live)

    def restore(self) -> None:
        """Goes back to the start of the step."""
        with torch.no_grad():
            for live, copy in zip(self._live, self._copies, strict=True):
                live.data.copy_(copy)

    def _forget_constants(self) -> None:
        pairs = zip(self._live, self._copies, strict=True)
        kept = [(live, copy) for live, copy in pairs if id(live) in self._changed]
        self._live, self._copies = [live for live, _ in kept], [copy for _, copy in kept]
