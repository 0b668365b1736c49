"""Runs scripts in forks of one process that has imported a module already: python warm.py MODULE.

Importing torch takes longer than most of the scripts. Reads one job a line from standard input,
``{"words": [...], "folder": ...}``: the words after ``python``, and where to run them and to leave
``stdout`` and ``stderr``. Answers each with its exit status.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

from watching import run_as_main

TIMEOUT_SECONDS = 180


def next_job() -> dict[str, Any] | None:
    """In a fork: the job that it is to do. In the server: None, at the end of all jobs."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return json.loads(line)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(job: dict[str, Any]) -> None:
    """Makes this process look as if it had been started for the job."""
    signal.alarm(TIMEOUT_SECONDS)
    folder = Path(job["folder"])
    os.chdir(folder)
    for descriptor, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        with (folder / name).open("rb" if descriptor == 0 else "wb") as file:
            os.dup2(file.fileno(), descriptor)
    sys.argv = job["words"]


if __name__ == "__main__":
    importlib.import_module(sys.argv[1])
    importlib.import_module("torch._dynamo")  # which the first optimizer would import otherwise
    job = next_job()
    if job is not None:  # outside all functions, so that the process ends as any other
        become(job)
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            run_as_main(sys.argv[0])
