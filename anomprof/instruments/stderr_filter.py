"""Keeps the profiler's chatter off the terminal.

torch 2.13 writes two lines that begin with ``USDT:`` at every start and stop of a profiler, and a
warning about blocks older than the profile where memory is recorded too. Both come from C++, below
``sys.stderr``. The environment variable that would silence the first (``KINETO_LOG_LEVEL=6``) must be
set before torch is imported and hides the profiler's real errors as well.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO

_STDERR = 2
_UNKNOWN_BLOCK = b"Memory block of unknown size was allocated before the profiling started"


@contextlib.contextmanager
def quiet_profiler() -> Iterator[None]:
    """Holds back what is written to stderr meanwhile; then lets through all but the chatter.

    File descriptor 2 points to a temporary file meanwhile: a write costs what it costs otherwise, and
    no thread wakes up beside a timed step. So lines appear late, and are lost if the process
    is killed meanwhile. Whoever must reach the terminal at once writes to a duplicate of
    descriptor 2 made before. Where there is no stderr, or no room for a file, nothing is changed.
    """
    with contextlib.ExitStack() as stack:
        try:
            saved = os.dup(_STDERR)
            stack.callback(os.close, saved)
            held = stack.enter_context(tempfile.TemporaryFile())
        except OSError:
            yield
            return
        _flush_python()  # what was written before must not land among the held lines
        os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            _flush_python()
            os.dup2(saved, _STDERR)
            _let_through(held)


def _let_through(held: IO[bytes]) -> None:
    held.seek(0)
    kept = b"".join(line for line in held if not (line.startswith(b"USDT:") or _UNKNOWN_BLOCK in line))
    with contextlib.suppress(OSError):
        while kept:
            kept = kept[os.write(_STDERR, kept) :]


def _flush_python() -> None:
    # sys.stderr may be None, closed, or someone's stand-in: none of that is ours to repair.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.flush()
