"""Loads what a user names as ``file.py:name``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from anomprof.errors import COULD_NOT_MEASURE, UserError


def load_attribute(spec: str, what: str) -> Any:
    """Imports ``file.py`` and returns its attribute ``name``.

    The file's folder goes to the front of ``sys.path``, as Python does for a script, so that the
    file may import its neighbours.

    Args:
        spec: ``file.py:name``.
        what: What the attribute should be, for the error message ("mode", "workload").

    Raises:
        UserError: No such file or name, or the file raised while it was imported.
    """
    file_name, _, name = spec.rpartition(":")
    path = Path(file_name)
    if not path.is_file():
        raise UserError(f"{what} {spec!r}: there is no file {file_name}; give the path to a Python file")
    module = _import(path, what)
    if not hasattr(module, name):
        there = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        own = [key for key in there if getattr(vars(module)[key], "__module__", "") == module.__name__]
        listed = ", ".join(own or there) or "nothing that can be called"
        raise UserError(f"{what} {spec!r}: {file_name} has no {name!r}; it has {listed}")
    return getattr(module, name)


def _import(path: Path, what: str) -> ModuleType:
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(path.resolve()):
            return known
        # A file called like a package that is loaded (json.py) must not replace it.
        name = f"anomprof_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UserError(f"{what}: {path} is not a Python file; give one that ends in .py")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(
            f"{what}: importing {path} failed: {describe(error, path)}", COULD_NOT_MEASURE
        ) from error
    return module


def describe(error: BaseException, path: Path | None = None) -> str:
    """Returns type, message and place of an exception in one line.

    Args:
        error: The exception, with its traceback.
        path: The user's file; the innermost frame in it is named, or else the innermost frame.
    """
    message = " ".join(str(error).split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{text} ({Path(error.filename).name}:{error.lineno})"
    own = [frame for frame in frames if path is not None and Path(frame.filename).resolve() == path.resolve()]
    if own or frames:
        frame = (own or list(frames))[-1]
        text += f" ({Path(frame.filename).name}:{frame.lineno})"
    return text
