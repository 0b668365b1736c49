"""Loads what a user names as ``file.py:name``, and says in one sentence what their code raised."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.names import closest

_PACKAGE = Path(__file__).resolve().parent


def load(spec: str, what: str) -> tuple[Any, Path]:
    """Imports ``file.py`` and returns its attribute ``name`` with the file's path.

    The file's folder is put on ``sys.path``, as Python does for a script, and stays there: the
    user's code may import its neighbours as late as it likes.

    Args:
        spec: ``file.py:name``.
        what: What the attribute is to be, for the error messages ("workload factory", "mode").

    Raises:
        UserError: No such file or name; exit code 3 where the file raised while it was imported.
    """
    file, separator, name = spec.rpartition(":")
    if not separator or not name:
        file = spec.rstrip(":")
        raise UserError(f"{spec} names no {what}; add its name, as in {file}:name")
    path = Path(file).resolve()
    if not path.is_file():
        raise UserError(f"there is no file {file}; give the path of a Python file, as in my_file.py:name")
    module = _import(path)
    if hasattr(module, name):
        return getattr(module, name), path
    own = [
        key
        for key, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and callable(value) and not key.startswith("_")
    ]
    there = f"there are {', '.join(own)}" if own else "there is nothing in it that could be called"
    raise UserError(f"{path.name} has no {what} {name!r}{closest(name, own)}; {there}")


def _import(path: Path) -> ModuleType:
    name = path.stem
    taken = sys.modules.get(name)
    if taken is not None and getattr(taken, "__file__", None) == str(path):
        return taken
    if taken is not None:
        # A file that is called like a loaded package (json.py) must not replace it.
        name = f"anomprof_user_{name}"
    if sys.path[0] != str(path.parent):
        sys.path.insert(0, str(path.parent))
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise UserError(f"{path.name} is not a Python file; give one that ends in .py")
    module = importlib.util.module_from_spec(specification)
    # Loader processes that are spawned import the module by this name.
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    # A script without a guard under "if __name__" may well end itself.
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise raised(error, f"importing {path.name}", path) from error
    return module


def raised(error: BaseException, what: str, path: Path | None = None) -> UserError:
    """Turns an exception of the user's code into a sentence with exit code 3.

    Args:
        error: What was caught; one of ours is returned as it is.
        what: What was being done.
        path: The user's file, as for :func:`describe`.
    """
    if isinstance(error, UserError):
        return error
    return UserError(f"{what} failed: {describe(error, path)}; repair it there", COULD_NOT_MEASURE)


def describe(error: BaseException, path: Path | None = None) -> str:
    """Returns type, message and place of an exception in one line.

    Args:
        error: The exception, with its traceback.
        path: The user's file: the innermost frame in it is named; without it, or where there is
            none, the innermost frame outside torch.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if path is not None and Path(frame.filename) == path]
    outside = [
        frame
        for frame in frames
        if "/torch/" not in Path(frame.filename).as_posix() and _PACKAGE not in Path(frame.filename).parents
    ]
    chosen = own or outside
    place = f" ({Path(chosen[-1].filename).name}:{chosen[-1].lineno})" if chosen else ""
    return f"{in_short(error)}{place}"


def in_short(error: BaseException) -> str:
    """Returns an exception's type and the line of its message that matters."""
    lines = str(error).strip().splitlines()
    if lines and " in DataLoader worker process " in lines[0]:  # the worker's whole traceback follows
        return lines[-1].rstrip(" .:")
    return f"{type(error).__name__}: {lines[0].rstrip(' .:')}" if lines else type(error).__name__
