"""What a bad value can harm: parameters, buffers and the state of optimizers."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from anomprof.sites import storage_key


class Stakes:
    """The models and optimizers of a run, as far as they were seen.

    Attributes:
        roots: Modules with parameters that were called from outside all modules.
    """

    def __init__(self) -> None:
        self.roots: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Notes an optimizer whose step has been called."""
        self._optimizers.add(optimizer)

    def parameter(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Returns the parameter that a tensor is, or whose memory it shares (``p.data``, a view of it)."""
        if is_parameter(tensor):
            return tensor
        return _sharing(tensor, self._parameters())

    def buffer(self, tensor: torch.Tensor, module: nn.Module | None) -> torch.Tensor | None:
        """Returns the buffer whose memory a tensor shares, of a running module or of a known model."""
        if module is not None and (own := _sharing(tensor, module.buffers(recurse=False))) is not None:
            return own
        return _sharing(tensor, (held for root in list(self.roots) for held in root.buffers()))

    def touches(self, tensors: list[torch.Tensor]) -> bool:
        """Whether one of the tensors is a parameter, or its memory is one's."""
        return any(self.parameter(tensor) is not None for tensor in tensors)

    @staticmethod
    def state_owners(optimizer: Any, tensors: list[torch.Tensor]) -> tuple[weakref.ref[torch.Tensor], ...]:
        """Returns the parameters to whose optimizer state one of the tensors belongs."""
        return tuple(
            weakref.ref(parameter)
            for parameter, state in optimizer.state.items()
            if isinstance(parameter, torch.Tensor)
            and isinstance(state, dict)
            and any(held is tensor for held in state.values() for tensor in tensors)
        )

    def _parameters(self) -> Iterator[torch.Tensor]:
        for root in list(self.roots):
            yield from root.parameters()
        for optimizer in list(self._optimizers):
            for group in optimizer.param_groups:
                yield from group["params"]


def is_parameter(tensor: torch.Tensor) -> bool:
    """Whether a tensor is what training changes: a leaf that gradients are accumulated in."""
    return isinstance(tensor, nn.Parameter) or (tensor.requires_grad and tensor.is_leaf)


def _sharing(tensor: torch.Tensor, candidates: Iterator[torch.Tensor]) -> torch.Tensor | None:
    try:
        key = storage_key(tensor)
        return next((held for held in candidates if held is tensor or storage_key(held) == key), None)
    except (RuntimeError, NotImplementedError):  # sparse tensors have no one storage
        return None
