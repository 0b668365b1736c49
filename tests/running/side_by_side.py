"""Runs one script twice, plainly and watched; whatever differs is a fault."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

DRIVER = str(Path(__file__).with_name("driver.py"))


def environment(folder: Path, **more: str) -> dict[str, str]:
    """One in which two runs can be compared."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONHASHSEED": "0", "FAKE_LOG": str(folder / "log"), "OMP_NUM_THREADS": "1", **more}


def plain(folder: Path, *words: object, flags=(), **more):
    return _run(folder, [sys.executable, *flags, *map(str, words)], **more)


def watched(folder: Path, *words: object, options=(), flags=(), **more):
    """Under the driver, which writes what the watcher saw into a file ``log``."""
    (folder / "log").unlink(missing_ok=True)
    out = [] if "--out" in options else ["--out", "out", "--force"]
    words = ["run", *out, *options, *map(str, words)]
    return _run(folder, [sys.executable, *flags, DRIVER, *words], **more)


def _run(folder, words, env=None, **more):
    return subprocess.run(
        words, cwd=folder, env=environment(folder, **(env or {})), capture_output=True, text=True,
        timeout=100, check=False, **more,
    )  # fmt: skip


def log(folder: Path) -> list[str]:
    """When the watcher was called."""
    return (folder / "log").read_text().splitlines()


def write(folder: Path, source: str, name: str = "script.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return path


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def same(folder: Path, source: str | None = None, *words: object, **more):
    """Asserts that output, messages and exit status are those of plain Python.

    Args:
        folder: The working directory of both.
        source: Of ``script.py``, or None where ``words`` name what is run.
        words: What follows ``python``, or the script's arguments if there is a source.

    Returns:
        The watched run.
    """
    if source is not None:
        write(folder, source)
        words = ("script.py", *words)
    expected = plain(folder, *words, **more)
    found = watched(folder, *words, **more)
    assert found.stdout == expected.stdout
    assert without_addresses(found.stderr) == without_addresses(expected.stderr)
    assert found.returncode == expected.returncode
    return found
