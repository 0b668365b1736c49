"""Runs cases in forks of one process that has torch loaded already, several times as fast as in fresh ones.

Reads one job a line from standard input, ``{"words": [...], "folder": ...}``: the words after ``python``, and
where to run them and to leave ``stdout`` and ``stderr``. Answers each with the exit status.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from pathlib import Path

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
    return job["words"]


if __name__ == "__main__":
    import anomprof.cli

    job = next_job()
    if job is not None:  # outside all functions of ours, so that the process ends as any other
        words = become(job)
        if words[:2] == ["-m", "anomprof"]:
            sys.argv = words[1:]
            anomprof.cli.main()
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
