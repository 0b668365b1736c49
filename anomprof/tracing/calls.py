"""Which module's forward is running: the calls of modules, nested."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from anomprof.tracing.frames import Point
from anomprof.tracing.living import living

#: Attributes under which wrappers keep the user's model; they are left out of names.
WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")


@dataclass(slots=True, eq=False)
class ModuleCall:
    """One call of a module that is running or was when an op ran.

    Attributes:
        module: The module; None once it is gone.
        parent: The call it is nested in.
        points: The user's frames between the two.
    """

    module: weakref.ref[nn.Module]
    parent: ModuleCall | None
    points: tuple[Point, ...]


@dataclass(slots=True, frozen=True)
class Place:
    """Where an op ran.

    Attributes:
        points: The user's frames inside the innermost module call, innermost first.
        call: That module call; None outside all modules.
    """

    points: tuple[Point, ...]
    call: ModuleCall | None

    def all_points(self) -> list[Point]:
        """Returns the user's frames from the innermost outwards, through all module calls."""
        points = list(self.points)
        call = self.call
        while call is not None:
            points.extend(call.points)
            call = call.parent
        return points

    def module(self) -> nn.Module | None:
        """Returns the innermost module, if it still exists."""
        return self.call.module() if self.call is not None else None


NOWHERE = Place((), None)


def has_parameters(module: nn.Module) -> bool:
    """Whether a module has parameters, whatever its own ``parameters`` returns."""
    return next(nn.Module.parameters(module), None) is not None


class ModuleReferences:
    """Weak references to modules, one per module."""

    def __init__(self) -> None:
        self._by_id: dict[int, weakref.ref[nn.Module]] = {}

    def of(self, module: nn.Module) -> weakref.ref[nn.Module]:
        """Returns the reference of a module."""
        known = self._by_id.get(id(module))
        if known is not None and known() is module:
            return known
        if len(self._by_id) > 100_000:  # modules made anew in every step
            self._by_id.clear()
        reference = self._by_id[id(module)] = weakref.ref(module)
        return reference


def qualified_name(module: nn.Module) -> str:
    """Returns a module's name below its root, the largest module that contains it; a root's is its class."""
    root, path = _root_of(module, modules_alive())
    if root is module or not path:
        return type(inner(root)).__name__
    return path


def parameter_name(tensor: torch.Tensor) -> tuple[str, str]:
    """Returns the name of a parameter or buffer below its root, and its module's; "" where it has none."""
    best: tuple[int, str, str] = (0, "", "")
    alive = modules_alive()
    for module in alive:
        for name, own in _own_tensors(module):
            if own is tensor:
                root, path = _root_of(module, alive)
                size = sum(1 for _ in root.modules())
                if size > best[0]:
                    owner = path if path else (type(inner(root)).__name__ if not name else "")
                    best = (size, f"{path}.{name}" if path else name, owner)
    return best[1], best[2]


def modules_alive() -> list[nn.Module]:
    """Returns every module of the process."""
    return [module for module in living(nn.Module) if "_modules" in module.__dict__]  # not one half made


def inner(module: nn.Module) -> nn.Module:
    """Returns the user's model inside DDP, torch.compile and the like."""
    while True:
        for name in WRAPPERS:
            held = module._modules.get(name)
            if held is not None and len(module._modules) == 1 and _is_from_torch(module):
                module = held
                break
        else:
            return module


def _is_from_torch(module: nn.Module) -> bool:
    return not type(module).__module__.startswith("__main__")


def _root_of(module: nn.Module, alive: list[nn.Module]) -> tuple[nn.Module, str]:
    best, best_path, best_size = module, "", 0
    for candidate in alive:
        if candidate is module:
            continue
        names = [name for name, held in candidate.named_modules() if held is module]
        if names:
            size = sum(1 for _ in candidate.modules())
            if size > best_size:
                best, best_path, best_size = candidate, names[0], size
    return best, _without_wrappers(best, best_path)


def _without_wrappers(root: nn.Module, path: str) -> str:
    words = path.split(".")
    kept: list[str] = []
    module: Any = root
    for word in words:
        is_wrapper = word in WRAPPERS and len(module._modules) == 1 and _is_from_torch(module)
        if not is_wrapper:
            kept.append(word)
        module = module._modules.get(word, module)
    return ".".join(kept).strip(".")


def _own_tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for held in (module._parameters, module._buffers):
        for name, tensor in held.items():
            if tensor is not None:
                yield name, tensor
