"""What a bad value can harm: parameters, buffers and the state of optimizers."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from anomprof.sites import storage_key
from anomprof.tracing.sight import Seen

_LOOKUPS_PER_INDEX = 500  # after which the index of memory is made anew: parameters may have been replaced


class Stakes:
    """The models and optimizers of a run, as far as they were seen.

    Attributes:
        roots: Modules with parameters that were called from outside all modules.
    """

    def __init__(self) -> None:
        self.roots: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._index: dict[tuple[int, bool], weakref.ref[torch.Tensor]] = {}
        self._indexed = (0, 0)
        self._lookups = 0

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Notes an optimizer whose step has been called."""
        self._optimizers.add(optimizer)

    def parameter(self, seen: Seen) -> torch.Tensor | None:
        """Returns the parameter that a tensor is, or whose memory it shares (``p.data``, a view of it)."""
        live = seen.live
        return live if live is not None and is_parameter(live) else self._known(seen, is_buffer=False)

    def buffer(self, seen: Seen, module: nn.Module | None) -> torch.Tensor | None:
        """Returns the buffer whose memory a tensor shares, of a running module or of a known model."""
        own = module._buffers.values() if module is not None else ()
        found = next((held for held in own if held is not None and held is seen.live), None)
        return found if found is not None else self._known(seen, is_buffer=True)

    def owner(self, seen: Seen) -> torch.Tensor | None:
        """Returns the parameter that a tensor is, or whose gradient it is."""
        parameter = self.parameter(seen)
        live = seen.live
        if parameter is None and live is not None:
            parameter = next((held for held in self.parameters() if held.grad is live), None)
        return parameter

    def touches(self, tensors: list[Seen]) -> bool:
        """Whether one of the tensors is a parameter, or its memory is one's."""
        return any(self.parameter(seen) is not None for seen in tensors)

    @staticmethod
    def state_owners(optimizer: Any, tensors: list[Seen]) -> tuple[weakref.ref[torch.Tensor], ...]:
        """Returns the parameters to whose optimizer state one of the tensors belongs."""
        alive = [live for seen in tensors if (live := seen.live) is not None]
        return tuple(
            weakref.ref(parameter)
            for parameter, state in optimizer.state.items()
            if isinstance(parameter, torch.Tensor)
            and isinstance(state, dict)
            and any(held is tensor for held in state.values() for tensor in alive)
        )

    def _known(self, seen: Seen, *, is_buffer: bool) -> torch.Tensor | None:
        """Returns the parameter or buffer with a tensor's memory."""
        size = (len(self.roots), len(self._optimizers))
        self._lookups += 1
        if size != self._indexed or self._lookups % _LOOKUPS_PER_INDEX == 0:
            self._index, self._indexed = self._made_index(), size
        key = seen.key
        found = self._index.get((key, is_buffer)) if key is not None else None
        return found() if found is not None else None

    def _made_index(self) -> dict[tuple[int, bool], weakref.ref[torch.Tensor]]:
        buffers = [(held, True) for root in list(self.roots) for held in nn.Module.buffers(root)]
        index = {}
        for held, is_buffer in (*buffers, *((held, False) for held in self.parameters())):
            with contextlib.suppress(Exception):  # not made yet, or of a kind without memory of its own
                index[storage_key(held), is_buffer] = weakref.ref(held)
        return index

    def parameters(self) -> Iterator[torch.Tensor]:
        """Yields the parameters of models and optimizers; some of them twice."""
        for root in list(self.roots):
            yield from nn.Module.parameters(root)
        for optimizer in list(self._optimizers):
            for group in optimizer.param_groups:
                yield from group["params"]


def is_parameter(tensor: torch.Tensor) -> bool:
    """Whether a tensor is what training changes: a leaf that gradients are accumulated in."""
    return isinstance(tensor, nn.Parameter) or (tensor.requires_grad and tensor.is_leaf)
