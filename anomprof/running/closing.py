"""Calls ``finish`` at every way out of the process that leaves a chance to."""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections.abc import Callable
from typing import NoReturn

from anomprof.console import Console
from anomprof.errors import UserError
from anomprof.running.ending import INTERRUPTED, mark_interrupted
from anomprof.running.script import flush

Finish = Callable[[], "int | None"]


def describe(error: BaseException) -> str:
    """One line of an error of ours."""
    if isinstance(error, UserError):
        return str(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Closing:
    """Finishes when the script's main part ends, and again after its threads and exit handlers.

    Must be made before the script runs: exit handlers are called in reverse order, so that ours,
    registered first, comes last. Does nothing in forked children.

    Args:
        finish: Returns the exit status that replaces the script's, or None. May be called often.
        console: Where an error in ``finish`` is reported.
    """

    def __init__(self, finish: Finish, console: Console) -> None:
        self._finish = finish
        self._console = console
        self._process = os.getpid()
        self._busy = threading.Lock()
        self._announced: int | None = None
        self._exit = os._exit
        os._exit = self._wrapped_exit()  # type: ignore[assignment]
        atexit.register(self._at_exit)

    @property
    def is_here(self) -> bool:
        """Whether this is the process that is watched, not a child forked from it."""
        return os.getpid() == self._process

    def __call__(self, status: int) -> int:
        """Finishes.

        Args:
            status: How the script ended.

        Returns:
            How the process should end.
        """
        self._announced = status
        wanted = self._close()
        if wanted is not None:
            self._announced = wanted
        return self._announced

    def withdraw(self) -> None:
        """Takes back all arrangements, for a process that lives on."""
        os._exit = self._exit
        atexit.unregister(self._at_exit)

    def _close(self) -> int | None:
        # Not waited for: a signal handler may call os._exit while the main thread is in here.
        if not self.is_here or not self._busy.acquire(blocking=False):
            return None
        try:
            return self._finish()
        except BaseException as error:
            self._console.say(f"could not finish ({describe(error)}); the script is not affected")
            return None
        finally:
            self._busy.release()

    def _at_exit(self) -> None:
        wanted = self._close()
        if wanted is not None and wanted != self._announced:
            # Found too late for an ordinary exit: its status was settled when the main part ended.
            flush()
            self._exit(wanted)
        if self._announced == INTERRUPTED and self.is_here:
            mark_interrupted()

    def _wrapped_exit(self) -> Callable[[int], NoReturn]:
        plain = self._exit

        @functools.wraps(plain)
        def _exit(status: int) -> NoReturn:
            wanted = self._close()
            plain(status if wanted is None else wanted)

        return _exit
