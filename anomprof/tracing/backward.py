"""One run of the autograd engine: its start, the forward op behind each node, the gradients it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from anomprof.sites import keeps_result, sequence_number
from anomprof.tracing.calls import Place
from anomprof.tracing.events import Event, NodeSite
from anomprof.tracing.frames import Point

_MOST_SITES = 100_000  # forward ops whose place is kept, per thread
_NOT_COUNTED = 2**63  # nodes that accumulate gradients carry the largest number there is

#: A forward op that made, or may have made, an autograd node: the op, its place.
ForwardSite = tuple[Any, tuple[Point, ...], Any]


@dataclass(slots=True)
class BackwardRun:
    """One run of the engine that has not ended.

    Attributes:
        place: The line that started it.
        roots: The nodes it started from.
        accumulates: Whether it leaves gradients in the leaves.
        events: What went bad while it ran.
    """

    place: Place
    roots: tuple[Any, ...]
    accumulates: bool
    events: list[Event] = field(default_factory=list)


class ForwardSites:
    """Which forward op made an autograd node, by the node's number.

    The first op that is dispatched after a number was given out is the op of that node; a later one with the
    same number made no node of its own. Each thread has numbers of its own: for an accelerator the engine
    runs on a thread of its own, and there is made what is recomputed or differentiated twice.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, ForwardSite] = {}
        self._of_engine: dict[int, ForwardSite] = {}
        self._first_of_step = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def begin_step(self, number: int) -> None:
        """An optimizer has stepped: of this thread, nodes that are made from now on are the ones in use."""
        self._first_of_step = number

    def add(self, number: int, site: ForwardSite, *, on_engine_thread: bool = False) -> None:
        """Notes the first op seen under a number."""
        sites = self._by_number
        if on_engine_thread:
            sites = self._of_engine
        if number not in sites:
            sites[number] = site
            if len(sites) > _MOST_SITES:
                for old in [key for key, _ in zip(sites, range(_MOST_SITES // 2), strict=False)]:
                    del sites[old]

    def of_node(self, node: Any) -> ForwardSite | None:
        """Returns the op that made a node."""
        number = sequence_number(node)
        if number >= _NOT_COUNTED:
            return None
        own, other = self._by_number.get(number), self._of_engine.get(number)
        return other if own is None or (other is not None and number < self._first_of_step) else own

    def node_site(self, node: Any, op_name: Any) -> NodeSite:
        """Returns what is known of a running node."""
        number, name, site = sequence_number(node), str(node.name()), self.of_node(node)
        if site is None:
            return NodeSite(name, number, "", None)
        function, points, call = site
        return NodeSite(name, number, op_name(function), Place(points, call), keeps_result(node))


def leaves_below(roots: tuple[Any, ...]) -> Iterator[torch.Tensor]:
    """Yields the leaves whose gradients a run of the engine accumulates."""
    for node in nodes_below(roots):
        variable = getattr(node, "variable", None)
        if variable is not None and isinstance(variable, torch.Tensor):
            yield variable


def nodes_below(roots: tuple[Any, ...]) -> Iterator[Any]:
    """Yields every autograd node that can be reached from the roots, each once."""
    seen: set[Any] = set()
    todo = [root for root in roots if root is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        todo.extend(parent for parent, _ in node.next_functions if parent is not None)
