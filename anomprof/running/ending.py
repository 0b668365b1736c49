"""How a script ended, told the way Python tells it, and passed on as the process's own end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import TracebackType
from typing import Any, NoReturn

#: Of a script that Ctrl-C ended; ``subprocess`` reports a process that died of a signal like this, too.
INTERRUPTED = -int(signal.SIGINT)

_LAST = ("last_type", "last_value", "last_traceback", "last_exc")


def end(error: BaseException | None) -> int:
    """Says on stderr what Python says about the end of a script.

    Must not be called while an exception is being handled: ``sys.excepthook`` would notice.

    Args:
        error: What the script raised, with a traceback that begins in the script.

    Returns:
        The exit status, or ``INTERRUPTED``.
    """
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _status(error)
    ended = _print(error)
    if ended is not None:
        return _status(ended)
    # Python, too, asks for the very class: a subclass ends like any other exception.
    return INTERRUPTED if type(error) is KeyboardInterrupt else 1


def leave(status: int) -> NoReturn:
    """Ends the process with what :func:`end` returned.

    Must be called where nothing catches ``KeyboardInterrupt``: only one that reaches Python itself
    makes the process die of SIGINT, after threads and ``atexit`` have had their turn.
    """
    if status != INTERRUPTED:
        sys.exit(status)
    hook = sys.excepthook
    last = {name: getattr(sys, name) for name in _LAST if hasattr(sys, name)}

    def silent(*_: object) -> None:
        sys.excepthook = hook
        for name, value in last.items():
            setattr(sys, name, value)

    sys.excepthook = silent  # the traceback has been printed
    raise KeyboardInterrupt


def mark_interrupted() -> None:
    """Reminds Python that the process is to die of SIGINT.

    Python forgets when any later code is executed from a string, as ``namedtuple`` and
    ``dataclass`` do, and remembers when such code raises ``KeyboardInterrupt``, caught or not.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def _status(error: SystemExit) -> int:
    """What the operating system gets to see of a ``SystemExit``."""
    try:
        code: Any = error.code
    except Exception:  # a subclass may do anything
        code = error
    if code is None:
        return 0
    if isinstance(code, int):
        low, high = -(2**63), 2**63 - 1
        number = int(code) if low <= code <= high else -1
        return number & (0xFFFFFFFF if os.name == "nt" else 0xFF)
    if sys.stderr is None:
        _write_past_python(code)
    else:
        with contextlib.suppress(Exception):  # Python ignores it as well
            sys.stderr.write(str(code))
    _write("\n")
    return 1


def _write(text: str) -> None:
    """Writes to ``sys.stderr`` or, where that fails, to the file behind it."""
    try:
        sys.stderr.write(text)
    except Exception:
        _write_past_python(text)


def _write_past_python(value: object) -> None:
    with contextlib.suppress(Exception):
        os.write(2, str(value).encode(errors="backslashreplace"))


def _print(error: BaseException) -> SystemExit | None:
    """Shows an uncaught exception through ``sys.excepthook``.

    Returns:
        How the script's own hook ended the process, if it did.
    """
    kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        _write("sys.excepthook is missing\n")
        sys.__excepthook__(kind, error, trace)
        return None
    try:
        hook(kind, error, trace)
        return None
    except SystemExit as wanted:
        return wanted
    except BaseException as raised:
        failure = raised
    inside: TracebackType | None = failure.__traceback__
    failure.__traceback__ = inside.tb_next if inside else None
    _write("Error in sys.excepthook:\n")
    sys.__excepthook__(type(failure), failure, failure.__traceback__)
    _write("\nOriginal exception was:\n")
    sys.__excepthook__(kind, error, trace)
    return None
