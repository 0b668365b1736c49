"""The command ``run``."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click

from anomprof.console import Console
from anomprof.errors import UserError
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
    "--detect",
    type=click.Choice(["trace", "guard"]),
    default="trace",
    show_default=True,
    help="trace looks at every op; guard looks once a step, and traces a bad step when it is done again.",
)
@click.option(
    "--on-bad",
    type=click.Choice(["stop", "skip", "continue"]),
    default="continue",
    show_default=True,
    help="stop ends the script at the first finding, with status 0 unless --fail-on says 1; skip (with "
    "--detect guard) leaves bad steps out.",
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
    detect: str,
    on_bad: str,
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

    if on_bad == "skip" and detect != "guard":
        raise UserError("--on-bad skip needs --detect guard; the trace notices a bad value after the update")
    chosen = Script(script, arguments, is_module)
    chosen.check()
    folder = prepare_folder(chosen, out, force=force)
    options = _options(out, force=force, detect=detect, on_bad=on_bad, fail_on=fail_on)
    command = shlex.join(["python", "-m", "anomprof", "run", *options, *chosen.words])
    watch = start(folder, script=chosen.target, command=command, detect=detect, on_bad=on_bad)

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


def _options(out: Path | None, *, force: bool, detect: str, on_bad: str, fail_on: str | None) -> list[str]:
    """The options as they could be typed again."""
    words = ["--out", str(out)] if out is not None else []
    words += ["--force"] if force else []
    words += ["--detect", detect] if detect != "trace" else []
    words += ["--on-bad", on_bad] if on_bad != "continue" else []
    words += ["--fail-on", fail_on] if fail_on else []
    return words
