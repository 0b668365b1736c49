"""The command ``run``."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from anomprof.console import Console
from anomprof.running.ending import leave
from anomprof.running.output import prepare_folder
from anomprof.running.runner import watch_script
from anomprof.running.script import Script

#: What the command leaves for its caller to do, below none of click's frames.
Departure = Callable[[], NoReturn]


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    short_help="Watch an unmodified training script.",
)
@click.option("-m", "is_module", is_flag=True, help="The next word names a module, as with python -m.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write.  [default: reports/SCRIPT-UTCTIME]",
)
@click.option("-f", "--force", is_flag=True, help="Replace the run in --out.")
@click.option(
    "--stop", is_flag=True, help="End the script at the first finding, with status 0 unless --fail-on says 1."
)
@click.option(
    "--fail-on",
    type=click.Choice(["anomaly", "error"]),
    help="Exit with 1 if there was one; otherwise the script's own status is kept.",
)
@click.argument("script", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
def run_command(
    is_module: bool,
    out: Path | None,
    force: bool,
    stop: bool,
    fail_on: str | None,
    script: str,
    arguments: tuple[str, ...],
) -> Departure:
    """Watch the training script SCRIPT, and name the origin of its first NaN or Inf.

    The script is not changed, and runs as under plain Python: all words after its name are its own.

    \b
    python -m anomprof run train.py --lr 0.1
    python -m anomprof run --fail-on anomaly -m package.train --lr 0.1
    """  # noqa: D301
    from anomprof.watching import start

    chosen = Script(script, arguments, is_module)
    chosen.check()
    folder = prepare_folder(chosen, out, force=force)
    command = _spelled(chosen, out, force=force, stop=stop, fail_on=fail_on)
    watch = start(folder, script=chosen.target, stop=stop, command=command)

    def finish() -> int | None:
        watch.finish()
        return watch.status(fail_on)

    return functools.partial(_depart, chosen, watch.install, finish, watch.explain)


def _depart(
    script: Script,
    install: Callable[[], None],
    finish: Callable[[], int | None],
    failed: Callable[[BaseException], None],
) -> NoReturn:
    leave(watch_script(script, install, finish, console=Console(), failed=failed))


def _spelled(script: Script, out: Path | None, *, force: bool, stop: bool, fail_on: str | None) -> str:
    """The command as it could be typed again."""
    words = ["python", "-m", "anomprof", "run"]
    words += ["--out", str(out)] if out is not None else []
    words += ["--force"] if force else []
    words += ["--stop"] if stop else []
    words += ["--fail-on", fail_on] if fail_on else []
    return shlex.join([*words, *script.words])
