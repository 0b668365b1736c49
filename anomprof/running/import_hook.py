"""Calls us right after the script has imported a module, and leaves no trace of having waited for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Python leaves frames of this file out of tracebacks and does not count them for warnings.
_IMPORTLIB = "<frozen importlib._bootstrap>"

Action = Callable[[ModuleType], None]


def when_imported(name: str, action: Action) -> ImportHook:
    """Calls ``action(module)`` once a top-level module is imported, or at once if it already is.

    The call comes in the importing thread, after the module's own code and before the import
    statement ends. What ``action`` raises comes out of that statement.
    """
    hook = ImportHook(name, action)
    module = sys.modules.get(name)
    if module is not None:
        action(module)
    else:
        sys.meta_path.insert(0, hook)
    return hook


class ImportHook:
    """A finder that lets the others find, and waits for the loader they give.

    It stays until the module's code has run without an error: ``importlib.util.find_spec`` asks for
    modules that are never imported, and a script may try again after an ``ImportError``.
    """

    def __init__(self, name: str, action: Action) -> None:
        self._name = name
        self._action = action
        self._mark_left: object = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds as if this finder were not there, and marks the loader."""
        if fullname != self._name:
            return None
        for finder in tuple(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                self._mark(spec.loader)
                return spec
        return None

    def remove(self) -> None:
        """Stops waiting."""
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def _mark(self, loader: object) -> None:
        # The loader keeps its class and its identity, which a wrapper would not; the attribute is
        # gone before the module's code runs.
        try:
            attributes = vars(loader)
        except TypeError:
            return
        other = attributes.get("exec_module")  # of another hook that works in the same way
        if other is not None and other is self._mark_left:
            return

        def exec_module(module: ModuleType) -> None:
            attributes.pop("exec_module", None)
            if other is not None:
                attributes["exec_module"] = other
            loader.exec_module(module)  # type: ignore[attr-defined]
            self.remove()
            self._action(sys.modules.get(self._name, module))

        exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORTLIB)
        if isinstance(attributes, dict):  # that of a class is a proxy, and would be shared
            attributes["exec_module"] = self._mark_left = exec_module
