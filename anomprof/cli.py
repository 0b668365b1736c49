"""The command line. Results go to stdout, everything else to stderr.

torch is imported only by the commands that measure: ``report`` reads records without it.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import anomprof
from anomprof.errors import WRONG_USAGE, UserError
from anomprof.harness.plan import DEFAULT_BUDGET_SECONDS, QUICK_BUDGET_SECONDS, QUICK_IMAGE_SIZE, Plan
from anomprof.running.command import run_command

_MOST = 1000  # steps in a turn, processes: beyond that lies a slip of the finger

_INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C ended


def main() -> None:
    """Runs the command line and exits with its status."""
    try:
        status = cli(standalone_mode=False, prog_name="python -m anomprof")
    except UserError as error:
        _fail(str(error), error.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "python -m anomprof"
        _fail(f"{error.format_message().rstrip('.')}; see '{command} --help'", WRONG_USAGE)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; nothing is left to say
        sys.exit(0)
    if callable(status):  # 'run': the script's end is the end of the process
        status()
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> None:
    print(f"anomprof: {message}", file=sys.stderr)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(anomprof.__version__, prog_name="anomprof")
def cli() -> None:
    """Name the line where the first NaN or Inf is made; measure what anomaly mode, AMP and others cost.

    \b
    python -m anomprof run train.py --lr 0.1 watch your script, unchanged, and name the first NaN or Inf
    python -m anomprof bench resnet50        measure the cost of every mode
    python -m anomprof bench my.py:make      the same on your own model
    python -m anomprof list                  what can be measured here
    python -m anomprof report DIR            rebuild the report of an earlier run
    """  # noqa: D301  (\b is click's mark for lines that stay as they are)


@cli.command()
@click.argument("workload")
@click.option(
    "--modes",
    default="default",
    show_default=True,
    metavar="A,B+C,...",
    help="Modes to measure, separated by commas; a+b combines two; 'default' and 'all' are lists; "
    "file.py:Class is your own.",
)
@click.option(
    "--budget",
    type=float,
    metavar="SECONDS",
    help=f"How long to measure; each mode gets two turns in any case.  [default: {DEFAULT_BUDGET_SECONDS:g}]",
)
@click.option(
    "--quick",
    is_flag=True,
    help=f"A first look in under a minute: {QUICK_BUDGET_SECONDS:g} s, pictures of {QUICK_IMAGE_SIZE} px.",
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1, or auto.")
@click.option("--batch-size", type=int, metavar="N", help="Samples per step.  [default: fits the device]")
@click.option("--image-size", type=int, metavar="PX", help="Height and width of pictures.")
@click.option("--sequence-length", type=int, metavar="N", help="Tokens per sequence.")
@click.option(
    "--dtype",
    default="float32",
    show_default=True,
    metavar="NAME",
    help="Precision of the model: float32, float64, bfloat16, float16.",
)
@click.option("--optimizer", metavar="NAME", help="sgd, adam, adamw, ...  [default: the workload's]")
@click.option(
    "--data",
    metavar="DIR|FILE",
    help="Real input: a folder class/picture.jpg|png for image models, a text file for language models.",
)
@click.option(
    "--clip-norm",
    type=float,
    default=1.0,
    show_default=True,
    metavar="T",
    help="Threshold of the mode clip-norm.",
)
@click.option(
    "--clip-value",
    type=float,
    default=0.5,
    show_default=True,
    metavar="T",
    help="Threshold of the mode clip-value.",
)
@click.option(
    "--steps", type=int, metavar="N", help="Timed steps per turn.  [default: about half a second of them]"
)
@click.option(
    "--processes",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Repeat everything in N fresh processes (the budget is divided among them).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of weights, data and order.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write.  [default: reports/WORKLOAD-UTCTIME]",
)
@click.option("-f", "--force", is_flag=True, help="Overwrite the record in --out.")
def bench(**chosen: Any) -> int:
    """Measure what each mode costs a training step of WORKLOAD.

    WORKLOAD is a built-in name (resnet50, resnet18, vit, gpt, lstm, mlp), torchvision:NAME,
    timm:NAME, or file.py:factory for your own. The baseline is always measured too.

    Writes report.html, report.md, results.json, steps.csv, ops.csv and the record.

    \b
    python -m anomprof bench resnet50
    python -m anomprof bench gpt --modes anomaly,amp-bf16+clip-norm --budget 60
    python -m anomprof bench my_model.py:make --batch-size 8
    """  # noqa: D301
    folder: Path = chosen.pop("out") or _default_folder(chosen["workload"])
    force: bool = chosen.pop("force")
    plan = _plan(**chosen)
    from anomprof.harness.processes import execute
    from anomprof.harness.progress import Progress
    from anomprof.record import FILE_NAME

    console = Console(stderr=True)
    command = "python -m anomprof " + " ".join(sys.argv[1:])
    absolute = folder.absolute()  # the user's code may change the working directory
    status = 0
    # What the user's code prints is not a result.
    with contextlib.redirect_stdout(sys.stderr), Progress(console, f"bench {plan.workload}") as progress:
        try:
            execute(plan, absolute, progress, force=force, command=command)
        except KeyboardInterrupt:
            if not (absolute / FILE_NAME).exists():
                raise
            console.print("interrupted: reporting what was measured so far")
            status = _INTERRUPTED
        except UserError as error:
            if (absolute / FILE_NAME).exists() and not force:
                with contextlib.suppress(UserError):
                    _report(absolute, folder)
            raise error
    _report(absolute, folder)
    return status


def _report(folder: Path, shown: Path) -> None:
    """Writes the report of a record, prints its summary and names what was written.

    Args:
        folder: Where the record is.
        shown: The same folder as the user typed it.
    """
    from anomprof import report
    from anomprof.record import FILE_NAME

    try:
        paths, summary = report.show(folder, Console())
    except KeyboardInterrupt:
        _fail(f"interrupted; 'python -m anomprof report {shown}' writes the report", _INTERRUPTED)
    others = ", ".join([*(path.name for path in paths[1:]), FILE_NAME])
    try:
        print(f"{summary}Wrote {shown / paths[0].name} (beside it {others})", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot print the summary ({error.strerror}); {shown} holds it all", 3) from error


def _default_folder(workload: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", workload).strip("-.") or "workload"
    now = datetime.datetime.now(datetime.timezone.utc)
    return Path("reports") / f"{name}-{now:%Y%m%dT%H%M%SZ}"


def _plan(**chosen: Any) -> Plan:
    """Checks what was typed and makes the plan of it."""
    from anomprof import devices, modes
    from anomprof.modes.mode import ModeOptions
    from anomprof.workloads import takes_any_image_size

    quick: bool = chosen["quick"]
    budget = chosen.pop("budget")
    if budget is None:
        budget = QUICK_BUDGET_SECONDS if quick else DEFAULT_BUDGET_SECONDS
    if not 0 < budget < math.inf:
        raise UserError(f"--budget is {budget:g}; give a number of seconds above 0")
    for option in ("steps", "processes"):
        if chosen[option] is not None and not 1 <= chosen[option] <= _MOST:
            raise UserError(f"--{option} is {chosen[option]}; give a whole number from 1 to {_MOST}")
    for option in ("clip_norm", "clip_value"):
        if not 0 < chosen[option] < math.inf:
            raise UserError(f"--{option.replace('_', '-')} is {chosen[option]:g}; give a number above 0")
    names = modes.parse(chosen.pop("modes"))
    for name in names:  # a mistake in a name should not wait for a model to be built
        modes.make(name, ModeOptions())
    if quick and chosen["image_size"] is None and takes_any_image_size(chosen["workload"]):
        chosen["image_size"] = QUICK_IMAGE_SIZE
    devices.check_dtype(chosen["dtype"])
    chosen["device"] = str(devices.resolve(chosen["device"]))
    return Plan(modes=names, budget_seconds=budget, **chosen)


cli.add_command(run_command)


@cli.command("report")
@click.argument("folder", type=click.Path(path_type=Path))
def report_command(folder: Path) -> None:
    """Rebuild report.html, report.md and the tables in FOLDER from its record alone.

    Works without torch, on any machine, and on the record of a run that was killed.
    """
    from anomprof import findings
    from anomprof.report import run_folder

    base = folder.parent if folder.is_file() else folder
    if (base / findings.FILE_NAME).exists():  # a watched run
        print(f"{run_folder.rebuild(base)}\nWrote {base / 'report.html'}", flush=True)
    else:
        _report(base, base)


@cli.command("list")
def list_command() -> None:
    """List workloads and modes, and whether they are available here."""
    from anomprof.listing import print_listing

    print_listing(Console())


@cli.command("bench-process", hidden=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("arguments")
def bench_process(folder: Path, arguments: str) -> None:
    """Measure one process's share of a plan (started by 'bench')."""
    from anomprof.harness.processes import run_child
    from anomprof.harness.progress import Progress

    with Progress(Console(stderr=True), "bench, in a fresh process") as progress:
        run_child(folder, arguments, progress)
