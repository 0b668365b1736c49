"""What a step computed outside modules, and which modules it called: enough to do it again."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from anomprof.tracing.frames import Point

_FIRST_SWEEP = 256  # entries, after which those that nothing needs any more are dropped
_MOST_ENTRIES = 8192
_DEEPEST = 3  # objects within objects in which tensors are looked for


class Captured:
    """A tensor that an entry was given and that no entry made.

    Attributes:
        tensor: It.
        version: How often it had been written.
    """

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.version = -1 if tensor.is_inference() else tensor._version


class Product:
    """A tensor that an earlier entry made: the how manieth of its results."""

    __slots__ = ("entry", "index")

    def __init__(self, entry: Entry, index: int) -> None:
        self.entry = entry
        self.index = index


class Attribute:
    """A tensor that a module had left in an attribute of its own or of one of its parts."""

    __slots__ = ("module", "name")

    def __init__(self, module: torch.nn.Module, name: str) -> None:
        self.module = module
        self.name = name


@dataclass(slots=True, eq=False)
class Entry:
    """One call.

    Attributes:
        call: What was called.
        args, kwargs: With what; tensors are :class:`Captured`, :class:`Product` or :class:`Attribute` there.
        points: The user's frames that called it, innermost first.
        gradients: Whether autograd was recording.
        autocast: Devices with automatic casting and its number type.
        random: State of the random generators, where they may have been used.
        is_module: Whether a module was called.
        training: Whether that module was in training mode.
        is_engine: Whether the autograd engine ran.
        is_change: Whether the call changed a tensor that it was given.
        is_update: Whether an optimizer stepped: repeated only to explain an error of autograd.
        generators: The script's own random generators that the call may have used, with their states.
        products: The tensors that it returned.
    """

    call: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    points: tuple[Point, ...]
    gradients: bool
    autocast: tuple[tuple[str, torch.dtype], ...] = ()
    random: Any = None
    is_module: bool = False
    training: bool = True
    is_engine: bool = False
    is_change: bool = False
    is_update: bool = False
    generators: tuple[tuple[torch.Generator, torch.Tensor], ...] = ()
    products: list[weakref.ref[torch.Tensor]] = field(default_factory=list)

    def sources(self) -> Iterator[Entry]:
        """Yields the entries whose products it was given."""
        for slot in slots_in((self.args, self.kwargs)):
            if isinstance(slot, Product):
                yield slot.entry


class Tape:
    """The calls since the last update, as far as something of them is left.

    Tensors that an entry made are not kept alive, those that came from elsewhere are.

    Attributes:
        entries: In the order of the calls.
        previous: Those of the step before, which autograd may still object to.
        originals: What a captured tensor held before an entry changed it: by ``id``.
        flags: ``requires_grad`` of tensors before an entry changed it: by ``id``.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.previous: list[Entry] = []
        self.originals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.flags: dict[int, tuple[torch.Tensor, bool]] = {}
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], Entry, int]] = {}
        self._sweep_at = _FIRST_SWEEP
        self._attributes: dict[tuple[Any, ...], Attribute] = {}

    def clear(self) -> None:
        """Forgets all."""
        if self.entries:
            self.entries = []
            self._made = {}
            self._sweep_at = _FIRST_SWEEP
        if self.originals or self.flags:
            self.originals, self.flags = {}, {}

    def begin_step(self, is_stale: Callable[[Entry], bool]) -> None:
        """An update is over: calls that depend on what it has changed cannot be repeated any more.

        Args:
            is_stale: Whether a call depends on it by itself, not through the calls before it.
        """
        earlier, self.previous = self.previous, self.entries
        stale: set[int] = set()
        wanted: set[int] = set()
        for entry in self.entries:
            if (
                entry.is_engine
                or entry.is_update
                or is_stale(entry)
                or any(id(source) in stale for source in entry.sources())
            ):
                stale.add(id(entry))
            elif any(product() is not None for product in entry.products):
                wanted.add(id(entry))
        self.entries = [entry for entry in self._with_sources(wanted) if id(entry) not in stale]
        gone = {id(entry) for entry in earlier} - {id(entry) for entry in self.previous}
        if self._made:
            self._made = {key: held for key, held in self._made.items() if id(held[1]) not in gone}
        self._sweep_at = _FIRST_SWEEP
        self.originals, self.flags = {}, {}

    def _with_sources(self, needed: set[int]) -> list[Entry]:
        """Returns certain entries and those that made or changed what they were given."""
        if not needed:
            return []
        for _ in range(2):  # what changed something may itself have been given something
            for entry in reversed(self.entries):
                if id(entry) in needed or (
                    entry.is_change and any(id(source) in needed for source in entry.sources())
                ):
                    needed.add(id(entry))
                    needed.update(id(source) for source in entry.sources())
        return [entry for entry in self.entries if id(entry) in needed]

    def add(self, entry: Entry) -> None:
        """Appends a call that is about to be made."""
        self.entries.append(entry)
        if len(self.entries) >= self._sweep_at:
            self.sweep(entry)

    def keep_products(self, entry: Entry, out: Any) -> None:
        """Notes what a call has returned."""
        if type(out) is torch.Tensor:
            self._keep(entry, out)
        elif out is not None:
            for tensor in tensors_within(out):
                self._keep(entry, tensor)

    def encode(self, value: Any) -> Any:
        """Returns arguments with slots in the places of tensors."""
        if isinstance(value, torch.Tensor):
            return self._slot(value)
        return rebuilt(value, self.encode)

    def is_made(self, tensor: torch.Tensor) -> bool:
        """Whether an entry made a tensor."""
        known = self._made.get(id(tensor))
        return known is not None and known[0]() is tensor

    def sweep(self, last: Entry | None = None) -> None:
        """Drops entries of which nothing is left and that nothing needs that is left.

        Args:
            last: An entry that is being made.
        """
        needed = {
            id(entry)
            for entry in self.entries
            if entry is last or entry.is_engine or any(product() is not None for product in entry.products)
        }
        self.entries = self._with_sources(needed)[-_MOST_ENTRIES // 2 :]
        kept = {id(entry) for entry in (*self.previous, *self.entries)}
        self._made = {
            key: held for key, held in self._made.items() if held[0]() is not None and id(held[1]) in kept
        }
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self.entries))

    def _keep(self, entry: Entry, tensor: torch.Tensor) -> None:
        if not self.is_made(tensor):  # what was changed in place is still what it was made as
            self._made[id(tensor)] = (weakref.ref(tensor), entry, len(entry.products))
        entry.products.append(weakref.ref(tensor))

    def _slot(self, tensor: torch.Tensor) -> Any:
        known = self._made.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return Product(known[1], known[2])
        if tensor.grad_fn is not None:
            found = self._attribute(tensor)
            if found is not None:
                return found
        return Captured(tensor)

    def _attribute(self, tensor: torch.Tensor) -> Attribute | None:
        """Looks for a tensor among the attributes of the modules that were called."""
        place = (len(self.entries), tuple(tensor.shape))
        known = self._attributes.get(place)
        if known is not None and vars(known.module).get(known.name) is tensor:
            return known
        for entry in reversed(self.entries):
            if not entry.is_module:
                continue
            for module in entry.call.modules():
                for name, value in vars(module).items():
                    if value is tensor:
                        found = self._attributes[place] = Attribute(module, name)
                        return found
        return None


def tensors_within(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yields the tensors in containers and in the attributes of other objects, always in the same order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_within(inner, depth)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_within(inner, depth)
    elif depth < _DEEPEST and hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
        for inner in vars(value).values():
            yield from tensors_within(inner, depth + 1)


def slots_in(value: Any) -> Iterator[Captured | Product | Attribute]:
    """Yields the slots in encoded arguments."""
    if isinstance(value, (Captured, Product, Attribute)):
        yield value
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from slots_in(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from slots_in(inner)


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a list, tuple or dict with its elements changed, anything else as it is."""
    if isinstance(value, tuple):
        items = [change(inner) for inner in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [change(inner) for inner in value]
    if isinstance(value, dict):
        changed = copy.copy(value)
        for key, inner in value.items():
            changed[key] = change(inner)
        return changed
    return value
