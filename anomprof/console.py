"""Where our own messages go while a script runs."""

from __future__ import annotations

import contextlib
import io
import os
import sys


class Console(io.TextIOBase):
    """Writes to what was stderr at the start, whatever the script does to stderr; never raises.

    A message that cannot be written is dropped: the script must not fail for it.
    """

    #: Far from the numbers that the script's own files get.
    _LOWEST = 200

    def __init__(self) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = _duplicate(2, self._LOWEST)
            self._identity = _identity(self._descriptor)

    def say(self, sentence: str) -> None:
        """Writes one line in our name."""
        self.write(f"anomprof: {sentence}\n")

    def write(self, text: str) -> int:
        """Writes at once, unbuffered."""
        if sys.stderr is sys.__stderr__:
            with contextlib.suppress(Exception):  # an unfinished line of the script's comes first
                sys.stderr.flush()  # type: ignore[union-attr]  # None is suppressed, too
        rest = text.encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError):
            while rest and (target := self._target()) is not None:
                rest = rest[os.write(target, rest) :]
        return len(text)

    def _target(self) -> int | None:
        """Our copy of stderr, unless the script closed all files and opened others in their place."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                if _identity(self._descriptor) == self._identity:
                    return self._descriptor
        return None

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Whether a person is looking."""
        target = self._target()
        return target is not None and os.isatty(target)

    def width(self, otherwise: int) -> int:
        """Returns the terminal's columns; ``otherwise`` where nobody is looking."""
        target = self._target()
        if target is not None:
            with contextlib.suppress(OSError):
                return os.get_terminal_size(target).columns or otherwise
        return otherwise

    def fileno(self) -> int:
        """The descriptor written to, which is not 2.

        Raises:
            OSError: There was no stderr, or the script has closed it for good.
        """
        target = self._target()
        if target is None:
            raise OSError("stderr is closed")
        return target


def _duplicate(descriptor: int, lowest: int) -> int:
    """A copy that child processes do not inherit."""
    try:
        import fcntl

        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    except (ImportError, OSError):  # not here, or fewer files than that are allowed
        return os.dup(descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
