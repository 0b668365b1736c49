"""Snapshot, restore and digest of a training state: what lets every mode take the same steps."""

from __future__ import annotations

import copy
import hashlib
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class RandomState:
    """State of every random generator that training code commonly draws from."""

    python: tuple[Any, ...]
    numpy: Any
    cpu: torch.Tensor
    cuda: tuple[torch.Tensor, ...]

    @classmethod
    def take(cls) -> RandomState:
        """Reads the generators of Python, NumPy (where loaded), the CPU and all CUDA devices."""
        numpy = sys.modules.get("numpy")
        return cls(
            python=random.getstate(),
            numpy=numpy.random.get_state() if numpy else None,
            cpu=torch.get_rng_state(),
            cuda=tuple(torch.cuda.get_rng_state_all()) if _cuda_is_in_use() else (),
        )

    def restore(self) -> None:
        """Puts every generator back."""
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        torch.set_rng_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(list(self.cuda))


@dataclass(frozen=True)
class Switches:
    """torch's switches for the whole process that change what a step does or how long it takes."""

    anomaly_mode: bool
    anomaly_check: bool
    gradients: bool
    default_dtype: torch.dtype
    threads: int
    deterministic: bool

    @classmethod
    def take(cls) -> Switches:
        """Reads them."""
        return cls(
            torch.is_anomaly_enabled(),
            torch.is_anomaly_check_nan_enabled(),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
        )

    def restore(self) -> list[str]:
        """Puts them back and returns the names of those that had changed."""
        now = Switches.take()
        changed = [key.replace("_", " ") for key, value in vars(self).items() if vars(now)[key] != value]
        if changed:
            torch.autograd.set_detect_anomaly(self.anomaly_mode, self.anomaly_check)
            torch.set_grad_enabled(self.gradients)
            torch.set_default_dtype(self.default_dtype)
            torch.set_num_threads(self.threads)
            torch.use_deterministic_algorithms(self.deterministic)
        return changed


class Snapshot:
    """A copy of a training state that can be put back any number of times.

    Values are copied back into the tensors that held them, so that memory addresses, and with
    them the speed of a step, stay what they were; a module that has put another tensor in the place of a
    parameter or buffer gets the first one back. Gradients are dropped, since every step starts
    without. Parameters, buffers, optimizer state, switches (train, requires_grad) and random state are held.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model = model
        self._optimizer = optimizer
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in state_tensors(model)]
        self._places = [
            (module, name, tensor, tensor.requires_grad)
            for module in model.modules()
            for own in (module.named_parameters(recurse=False), module.named_buffers(recurse=False))
            for name, tensor in own
        ]
        self._optimizer_state = {parameter: _copied(state) for parameter, state in optimizer.state.items()}
        self._groups = [
            {key: copy.deepcopy(value) for key, value in group.items() if key != "params"}
            for group in optimizer.param_groups
        ]
        self._training = [(module, module.training) for module in model.modules()]
        self._random = RandomState.take()

    @property
    def nbytes(self) -> int:
        """Size of the tensors held: parameters, buffers and optimizer state."""
        held = [copy for _, copy in self._tensors]
        for state in self._optimizer_state.values():
            held.extend(value for value in _leaves(state) if isinstance(value, torch.Tensor))
        return sum(tensor.nbytes for tensor in held)

    def restore(self) -> None:
        """Puts the state back."""
        for module, name, tensor, requires_grad in self._places:
            if getattr(module, name) is not tensor:
                setattr(module, name, tensor)
            if tensor.requires_grad != requires_grad and tensor.is_leaf:
                tensor.requires_grad_(requires_grad)
        with torch.no_grad():
            for tensor, saved in self._tensors:
                tensor.copy_(saved)
        self._restore_optimizer()
        self._optimizer.zero_grad(set_to_none=True)
        for module, training in self._training:
            module.training = training
        self._random.restore()

    def _restore_optimizer(self) -> None:
        state = self._optimizer.state
        for parameter in [parameter for parameter in state if parameter not in self._optimizer_state]:
            del state[parameter]
        for parameter, saved in self._optimizer_state.items():
            state[parameter] = _put_back(state.get(parameter), saved)
        for group, values in zip(self._optimizer.param_groups, self._groups, strict=True):
            for key, value in values.items():
                group[key] = _put_back(group.get(key), value)


def state_tensors(model: nn.Module) -> Iterator[torch.Tensor]:
    """Yields parameters, then buffers, each once."""
    yield from model.parameters()
    yield from model.buffers()


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """Returns a hexadecimal SHA-256 of the tensors' values, bit by bit, with shapes and dtypes.

    -0.0 and 0.0 differ, and so do two NaNs with other payloads.
    """
    hasher = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach()
        hasher.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        if plain.layout is not torch.strided:
            plain = plain.to_dense()
        raw = plain.cpu().contiguous().reshape(-1).view(torch.uint8)
        hasher.update(raw.numpy().data)
    return hasher.hexdigest()


def _copied(value: Any) -> Any:
    return copy.deepcopy(value) if not isinstance(value, torch.Tensor) else value.detach().clone()


def _put_back(current: Any, saved: Any) -> Any:
    """Returns a value equal to ``saved``, written into ``current`` where that is possible."""
    if isinstance(saved, torch.Tensor):
        if _same_kind(current, saved):
            with torch.no_grad():
                current.copy_(saved)
            return current
        return saved.detach().clone()
    if isinstance(saved, dict):
        held = current if isinstance(current, dict) else {}
        for key in [key for key in held if key not in saved]:
            del held[key]
        for key, value in saved.items():
            held[key] = _put_back(held.get(key), value)
        return held
    return copy.deepcopy(saved)


def _same_kind(current: Any, saved: torch.Tensor) -> bool:
    return (
        isinstance(current, torch.Tensor)
        and current.shape == saved.shape
        and current.dtype == saved.dtype
        and current.device == saved.device
    )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _cuda_is_in_use() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
