"""Runs a script under watch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType, TracebackType

from anomprof.console import Console
from anomprof.running.closing import Closing, Finish, describe
from anomprof.running.ending import end
from anomprof.running.import_hook import when_imported
from anomprof.running.script import Script
from anomprof.running.stage import Stage


def watch_script(
    script: Script,
    install: Callable[[], None],
    finish: Finish,
    *,
    console: Console | None = None,
    lives_on: bool = False,
    failed: Callable[[BaseException], None] | None = None,
) -> int:
    """Runs a script as ``__main__`` of this process and tells its end as Python would.

    ::

        install    as soon as the script has imported torch (at once if it is there already)
        the script's main part ends; its traceback is printed, and is in sys.last_value
        finish     for the first time; the status is returned
        the script's threads end, its exit handlers run
        finish     again (also at os._exit)

    Errors in ``install`` and ``finish`` are reported in one line and go no further.

    Args:
        script: What to run.
        install: Starts watching torch.
        finish: Writes what was seen. Where it returns a status, the process ends with that.
        console: For our messages.
        failed: Told, before ``finish``, what ended the script: an exception or an exit with a status.
        lives_on: Whether the process goes on after the script, so that all is put back and ``finish``
            is called once. Otherwise ``sys`` stays as it is, for the script's threads and exit handlers.

    Returns:
        The exit status, or ``INTERRUPTED``; pass it to :func:`anomprof.running.ending.leave`.
    """
    console = console or Console()
    closing = Closing(finish, console)

    def guarded(_: ModuleType) -> None:
        if not closing.is_here:
            return
        try:
            install()
        except Exception as error:
            console.say(f"cannot watch this script ({describe(error)}); it runs on unwatched")

    stage = Stage(script)
    hook = when_imported("torch", guarded)
    failure: BaseException | None = None
    try:
        script.run()
    except BaseException as error:
        _leave_us_out(error)
        failure = error
    status = end(failure)
    if failed is not None and failure is not None and status:
        try:
            failed(failure)
        except Exception as error:
            console.say(f"could not look into the script's end ({describe(error)})")
    status = closing(status)
    if lives_on:
        hook.remove()
        stage.restore()
        closing.withdraw()
    return status


def _leave_us_out(error: BaseException) -> None:
    """Takes our own frames out of a traceback, and out of those of the errors that led to it."""
    told: BaseException | None = error
    seen: set[int] = set()
    while told is not None and id(told) not in seen:
        seen.add(id(told))
        own: list[TracebackType] = []
        trace = told.__traceback__
        while trace is not None:
            if not trace.tb_frame.f_globals.get("__name__", "").startswith("anomprof."):
                own.append(trace)
            trace = trace.tb_next
        for this, following in itertools.zip_longest(own, own[1:]):
            this.tb_next = following
        told.__traceback__ = own[0] if own else None
        told = told.__cause__ or told.__context__
