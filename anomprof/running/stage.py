"""What a script finds in ``sys`` when it starts, and how it is put back."""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import os
import sys
from types import ModuleType

from anomprof.running.script import Script
from anomprof.running.shadowed import forget_shadowed


class Stage:
    """Sets ``sys.argv``, ``sys.path``, ``sys.orig_argv`` and the module ``__main__`` for a script.

    Args:
        script: Who is to come on.
    """

    def __init__(self, script: Script) -> None:
        self._argv = sys.argv
        self._orig_argv = sys.orig_argv
        self._path = sys.path
        self._entries = list(sys.path)
        self._main = sys.modules["__main__"]  # held: the process's first frame uses its globals
        sys.orig_argv = [*_interpreter_words(), *script.words]
        sys.argv = ["-m" if script.is_module else script.target, *script.arguments]
        _set_path(script)
        self._shadowed = forget_shadowed(sys.path[0]) if sys.path else {}
        sys.modules["__main__"] = _fresh_main()

    def restore(self) -> None:
        """Puts everything back, for a process that lives on."""
        sys.argv = self._argv
        sys.orig_argv = self._orig_argv
        sys.path = self._path
        sys.path[:] = self._entries
        sys.modules.update(self._shadowed)
        sys.modules["__main__"] = self._main


def _fresh_main() -> ModuleType:
    """The module in which Python executes a script, as it is before the first line."""
    main = ModuleType("__main__")
    main.__loader__ = importlib.machinery.BuiltinImporter  # until the file's own is known
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins
    return main


def _interpreter_words() -> list[str]:
    """The interpreter and its own options: what stands before the name of our program."""
    words = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return words[:-2] if words[-2:-1] == ["-m"] else words[:-1]


def _set_path(script: Script) -> None:
    """Replaces the entry that Python made for our program by the one it would have made for the script."""
    unsafe = not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
    if unsafe:
        del sys.path[:1]
    if script.is_container:
        sys.path.insert(0, script.path)
    elif unsafe and script.is_module:
        with contextlib.suppress(FileNotFoundError):  # a working directory that was deleted
            sys.path.insert(0, os.getcwd())  # noqa: PTH109
    elif unsafe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(script.path)))  # noqa: PTH120
