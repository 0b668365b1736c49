"""Runs a plan: in this process, in fresh ones, or both; every process writes into one record."""

from __future__ import annotations

import contextlib
import datetime
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import torch

import anomprof
from anomprof.environment.facts import collect
from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.harness.plan import Plan
from anomprof.harness.rounds import Harness, Listener
from anomprof.modes import make
from anomprof.modes.mode import ModeOptions
from anomprof.record import FILE_NAME, SUPERSEDED, RecordWriter, load
from anomprof.results import BASELINE
from anomprof.workload import Workload
from anomprof.workloads import WorkloadOptions, build

#: The hidden command that a fresh process runs.
CHILD_COMMAND = "bench-process"


@dataclass(frozen=True)
class Share:
    """What one process does.

    Attributes:
        modes: The baseline first.
        described: Those whose facts it writes (see :class:`Harness`).
        own: Whether it exists for modes that need a process of their own.
    """

    modes: tuple[str, ...]
    described: tuple[str, ...]
    budget_seconds: float
    own: bool = False


def shares(plan: Plan) -> list[Share]:
    """Divides modes and budget among processes.

    Modes that need a process of their own get one each, with a baseline to be paired with. The
    budget goes by the number of modes, the baseline counted too.
    """
    options = ModeOptions(plan.clip_norm, plan.clip_value)
    apart = [name for name in plan.modes if make(name, options).own_process]
    together = tuple(name for name in plan.modes if name not in apart)
    if apart and together == (BASELINE,):
        together = ()
    per_mode = plan.budget_seconds / (len(together) + 2 * len(apart))
    groups = [(together, len(together), False)] if together else []
    groups += [((BASELINE, name), 2, True) for name in apart]
    divided: list[Share] = []
    undescribed = set(plan.modes)
    for modes, weight, own in groups:
        for _ in range(plan.processes):
            described = tuple(name for name in modes if name in undescribed)
            undescribed.difference_update(described)
            divided.append(Share(modes, described, per_mode * weight / plan.processes, own))
    return divided


def execute(plan: Plan, folder: Path, listener: Listener, *, force: bool, command: str) -> None:
    """Runs a plan and leaves its record in ``folder``.

    Raises:
        UserError: Nothing could be measured, or the record cannot be written.
        KeyboardInterrupt: The user stopped it; the record says so and holds what was measured.
    """
    divided = shares(plan)
    in_this_process = plan.processes == 1 and not divided[0].own
    # Built before the record is made: a mistake in the workload should leave no empty folder.
    workload = build_workload(plan) if in_this_process else None
    writer = RecordWriter.create(folder, force=force)
    try:
        _write_start(writer, plan, command)
        _run_shares(plan, folder, listener, writer, divided, workload)
        writer.fact("status", "finished")
    except KeyboardInterrupt:
        writer.fact("status", "interrupted")
        writer.fact("stop_reason", "it was interrupted")
        raise
    except UserError as error:
        writer.fact("status", "failed")
        writer.fact("stop_reason", str(error))
        raise
    finally:
        writer.close()
        _keep_the_better_record(folder, writer)


def _keep_the_better_record(folder: Path, writer: RecordWriter) -> None:
    """Takes away a record without a single turn, and brings back the one that it was to replace."""
    old = folder / SUPERSEDED
    if writer.failed or load(folder).turns:
        old.unlink(missing_ok=True)
        return
    (folder / FILE_NAME).unlink()
    if old.exists():
        old.replace(folder / FILE_NAME)
    for empty in (folder, folder.parent):
        with contextlib.suppress(OSError):  # holds other files
            empty.rmdir()


def _run_shares(
    plan: Plan,
    folder: Path,
    listener: Listener,
    writer: RecordWriter,
    divided: Sequence[Share],
    workload: Workload | None,
) -> None:
    stop_reasons = []
    for process, share in enumerate(divided):
        if process == 0 and workload is not None:
            writer.fact("workload", describe_workload(workload))
            harness = Harness(
                plan, workload, writer, listener, share.modes, share.described, share.budget_seconds
            )
            stop_reasons.append(harness.run())
            del harness
            writer.commit()
            workload = None  # its memory belongs to the next process
        else:
            stop_reasons.append(_run_child(folder, process, share, writer))
    reasons = list(dict.fromkeys(reason for reason in stop_reasons if reason))
    writer.fact("stop_reason", "; ".join(reasons))


def _write_start(writer: RecordWriter, plan: Plan, command: str) -> None:
    writer.fact("kind", "bench")
    writer.fact("status", "running")
    writer.fact("anomprof_version", anomprof.__version__)
    writer.fact("started_utc", datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
    writer.fact("command", command)
    writer.fact("plan", plan.to_json())
    writer.fact("environment", collect(torch.device(plan.device)))
    options = ModeOptions(plan.clip_norm, plan.clip_value)
    for name in plan.modes:  # in the order of the report
        writer.mode(name, {"available": True, "summary": make(name, options).summary})


def _run_child(folder: Path, process: int, share: Share, writer: RecordWriter) -> str:
    """Runs a share in a fresh process and returns why it ended measuring."""
    writer.commit()  # the child needs the file to itself
    arguments = orjson.dumps({"process": process, "share": share})
    # The child must find this very package, also where it is not installed.
    paths = [str(Path(anomprof.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    command = [sys.executable, "-m", "anomprof", CHILD_COMMAND, str(folder), arguments.decode()]
    ended = subprocess.run(command, env=environ, check=False)
    facts = load(folder).facts.get(f"process:{process}", {})
    if ended.returncode == 0:
        return str(facts.get("stop_reason", ""))
    if ended.returncode in (130, -2):
        raise KeyboardInterrupt
    reason = facts.get("error") or f"its process ended with status {ended.returncode}"
    if not share.own:
        raise UserError(reason, facts.get("exit_code", COULD_NOT_MEASURE))
    for name in share.modes:
        if name != BASELINE:
            writer.mode(name, {"available": False, "reason": reason})
    return ""


def run_child(folder: Path, arguments: str, listener: Listener) -> None:
    """What the hidden command does: one share of the plan in ``folder``'s record."""
    wanted = orjson.loads(arguments)
    process, share = int(wanted["process"]), Share(**wanted["share"])
    plan = Plan.from_json(load(folder).facts["plan"])
    writer = RecordWriter.join(folder, process)
    try:
        workload = build_workload(plan)
        if "workload" not in load(folder).facts:
            writer.fact("workload", describe_workload(workload))
        harness = Harness(
            plan, workload, writer, listener, share.modes, share.described, share.budget_seconds
        )
        writer.fact(f"process:{process}", {"stop_reason": harness.run()})
    except UserError as error:
        writer.fact(f"process:{process}", {"error": str(error), "exit_code": error.exit_code})
        raise
    finally:
        writer.close()


def build_workload(plan: Plan) -> Workload:
    """Builds the plan's workload."""
    options = WorkloadOptions(
        device=torch.device(plan.device),
        dtype=getattr(torch, plan.dtype),
        batch_size=plan.batch_size,
        image_size=plan.image_size,
        sequence_length=plan.sequence_length,
        optimizer=plan.optimizer,
        seed=plan.seed,
        data=Path(plan.data) if plan.data else None,
    )
    return build(plan.workload, options)


def describe_workload(workload: Workload) -> dict[str, Any]:
    """Returns what the record keeps of a workload."""
    return {
        "name": workload.name,
        "parameter_count": workload.parameter_count,
        "samples_per_batch": workload.samples_per_batch,
        "checkpoint_blocks": len(workload.checkpoint_blocks),
        "facts": dict(workload.facts),
    }
