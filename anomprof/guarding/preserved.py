"""All that a replay touches: put aside before it, and put back after it bit by bit."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from anomprof.replay import RandomState
from anomprof.sites import set_versions

_COPIED = (list, dict, set)
_REGISTRIES = frozenset(["_parameters", "_buffers", "_modules"])


class Preserved:
    """The state of a training at one moment.

    Parameters are not copied: a replay does not change them. Buffers are, and what modules keep in plain
    attributes; gradients are put aside, so that the replay starts without any.

    Args:
        models: Modules whose parts may change.
        leaves: Tensors that gradients are accumulated in.
        flags: Tensors with what ``requires_grad`` was before the replayed part of the step.
        originals: Tensors with what they held then.
        generators: The script's own random generators.
    """

    def __init__(
        self,
        models: Iterable[nn.Module],
        leaves: Iterable[torch.Tensor],
        flags: Iterable[tuple[torch.Tensor, bool]] = (),
        originals: Iterable[tuple[torch.Tensor, torch.Tensor]] = (),
        generators: Iterable[torch.Generator] = (),
    ) -> None:
        modules = list({id(module): module for model in models for module in model.modules()}.values())
        self._random = RandomState.take()
        self._generators = [(generator, generator.get_state()) for generator in generators]
        self._attributes = [(module, _attributes(module)) for module in modules]
        self._buffers = [
            (buffer, buffer.detach().clone())
            for module in modules
            for buffer in module._buffers.values()
            if buffer is not None
        ]
        self._registries: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (registry, dict(registry))
            for module in modules
            for registry in (module._parameters, module._buffers)
        ]
        every = {id(leaf): leaf for leaf in leaves}
        self._leaves = [(leaf, leaf.grad, leaf.requires_grad) for leaf in every.values()]
        self._flags = [(tensor, was, tensor.requires_grad) for tensor, was in flags]
        self._originals = [(tensor, was, tensor.detach().clone()) for tensor, was in originals]
        written = [
            *every.values(),
            *(buffer for buffer, _ in self._buffers),
            *(held[0] for held in self._originals),
        ]
        self._versions = [(tensor, tensor._version) for tensor in written if not tensor.is_inference()]

    def begin(self) -> None:
        """Goes back to the start of what is replayed."""
        with torch.no_grad():
            for leaf, _, _ in self._leaves:
                leaf.grad = None
            for tensor, flag, _ in self._flags:
                tensor.requires_grad_(flag)
            for tensor, was, _ in self._originals:
                tensor.data.copy_(was)

    def leaves(self) -> list[torch.Tensor]:
        """Returns the tensors that gradients are accumulated in."""
        return [leaf for leaf, _, _ in self._leaves]

    def gradients(self) -> list[torch.Tensor]:
        """Returns the gradients that a replay has left."""
        return [leaf.grad for leaf, _, _ in self._leaves if leaf.grad is not None]

    def restore(self) -> None:
        """Puts everything back as it was when this was made."""
        for registry, held in self._registries:
            registry.clear()
            registry.update(held)
        for module, attributes in self._attributes:
            _put_back(module, attributes)
        with torch.no_grad():
            for buffer, now in self._buffers:
                buffer.data.copy_(now)
            for tensor, _, now in self._originals:
                tensor.data.copy_(now)
            for tensor, _, flag in self._flags:
                tensor.requires_grad_(flag)
            for leaf, gradient, flag in self._leaves:
                if leaf.requires_grad != flag and leaf.is_leaf:
                    leaf.requires_grad_(flag)
                leaf.grad = gradient
        set_versions(self._versions)  # or autograd would take what is back again for changed
        self._random.restore()
        for generator, state in self._generators:
            generator.set_state(state)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keeps what Python code prints from being printed a second time."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _attributes(module: nn.Module) -> dict[str, tuple[Any, Any]]:
    """Returns the plain attributes of a module, containers with a copy of what they hold."""
    return {
        name: (value, copy.copy(value) if type(value) in _COPIED else None)
        for name, value in vars(module).items()
        if name not in _REGISTRIES
    }


def _put_back(module: nn.Module, attributes: dict[str, tuple[Any, Any]]) -> None:
    own = vars(module)
    for name in [name for name in own if name not in attributes and name not in _REGISTRIES]:
        del own[name]
    for name, (value, held) in attributes.items():
        if own.get(name) is not value:
            own[name] = value
        if held is None:
            continue
        if isinstance(value, list):
            value[:] = held
        elif len(value) != len(held) or isinstance(value, set):
            value.clear()
            value.update(held)
        else:
            value.update(held)
