"""Runs cases in forks of one process that has torch loaded already, several times as fast as in fresh ones.

Reads one job a line from standard input, ``{"words": [...], "folder": ...}``: the words after ``python``, and
where to run them and to leave ``stdout`` and ``stderr``; with ``"as_accelerator": true`` the trace treats the
processor as a device whose numbers are dear to read. Answers each with the exit status.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

_PATIENCE_SECONDS = 120


def next_job() -> dict | None:
    """In a fork: the job that it is to do. In the server: None, at the end of all jobs."""
    for line in sys.stdin:
        job = json.loads(line)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            return job
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(job: dict) -> list[str]:
    """Turns this process into one that was started for the job."""
    signal.alarm(_PATIENCE_SECONDS)
    folder = Path(job["folder"])
    os.chdir(folder)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        with (folder / name).open("wb") as file:
            os.dup2(file.fileno(), descriptor)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    if job.get("as_accelerator"):
        import anomprof.tracing.tracer

        anomprof.tracing.tracer.is_accelerator = lambda tensor: True
    return job["words"]


def end(error: BaseException | None) -> NoReturn:
    """Ends the process as Python does, without taking all modules apart, which takes seconds."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    leave(status & 0xFF)


leave = os._exit  # before a watcher wraps it

if __name__ == "__main__":
    import torch._dynamo  # noqa: F401  (optimizers load it, which takes longer than all else)

    import anomprof.cli

    gc.freeze()  # what is loaded now needs no collecting in the forks
    job = next_job()
    if job is not None:
        words = become(job)
        failure = None
        try:
            if words[:2] == ["-m", "anomprof"]:
                sys.argv = words[1:]
                anomprof.cli.main()
            else:
                sys.argv = words
                runpy.run_path(words[0], run_name="__main__")
        except BaseException as error:
            failure = error
        end(failure)
