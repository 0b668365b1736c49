"""What of torch's the trace stands in front of, and how all of it is put back."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from anomprof.sites import without_modes, without_overrides
from anomprof.tracing.tracer import Tracer
from anomprof.tracing.watcher import Watcher

#: Returns who watches the thread that is running, if anybody does.
Here = Callable[[], "Watcher | None"]


class Wrappings:
    """Replaced functions of modules and classes, until :meth:`undo`."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return bool(self._undo)

    def replace(self, owner: Any, name: str, replacement: Any) -> None:
        """Puts ``replacement`` under a name of a class or module."""
        original = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        setattr(owner, name, replacement)

        def undo() -> None:
            now = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
            if now is replacement:
                setattr(owner, name, original)

        self.add(undo)

    def add(self, undo: Callable[[], None]) -> None:
        """Has something else undone as well."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Puts all back, the latest first. What somebody else wrapped meanwhile stays wrapped by them."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()


class Private:
    """A context in which we work with the user's tensors: seen by nobody's modes, harmful to nobody.

    A fault of ours switches the trace off; the user's training goes on. A finding that ends the run
    (``SystemExit``) passes.
    """

    __slots__ = ("_modes", "_overrides", "_tracer")

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __enter__(self) -> None:
        self._modes = without_modes()
        self._modes.__enter__()
        self._overrides = without_overrides()
        self._overrides.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._overrides.__exit__(None, None, None)
        self._modes.__exit__(None, None, None)
        if not isinstance(error, Exception):
            return False
        self._tracer.give_up(error)
        return True
