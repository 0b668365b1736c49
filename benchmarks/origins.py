"""Who names the origin of a bad value? anomprof and other tools on training scripts whose fault is known.

    python benchmarks/origins.py
    python benchmarks/origins.py --tools anomaly,sherlorch --only "half-*"
    python benchmarks/origins.py --json origins.json          per case what was said and how it was judged
    python benchmarks/origins.py --anomprof-json origins.json  anomprof's results from an earlier run

The cases are the scripts in tests/cases, unmodified; score.py there says what their headers mean. Every
tool runs every case once, in a fork of its own:

    no tool       only cases that end with an error: what Python's traceback says by itself
    anomaly       torch.autograd.set_detect_anomaly(True)
    sherlorch     sherlorch.trace(capture_stack=True), each model watched, asked for a diagnosis of the
                  first bad loss, gradient, parameter or evaluated output
    transformers  DebugUnderflowOverflow on each model
    anomprof      python -m anomprof run

Each run counts once, in the first column that fits:

    exact line    the line marked as origin (or as good as it) is among those that the tool names: for
                  anomaly mode the script's last line in the stack of the forward call and the line where
                  it ends the script, for sherlorch that of any culprit, for transformers the line that
                  called the module, for anomprof that of the first finding. Where a tool says nothing
                  and the script ends with an error, the last line in Python's traceback counts for it
    right module  not the line, but the module (or that the input or a parameter was bad already, where
                  that is the fault); counts only for tools that name modules
    wrong         something else was blamed
    silent        nothing was said by the tool

A false alarm is a fault named in a healthy script. sherlorch and transformers are installed for this
benchmark only: python -m pip install sherlorch transformers
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
sys.path.insert(0, str(HERE.parent))

from tests.cases.score import Header, cases, read_header  # noqa: E402

KEPT_CHARACTERS = 4000

COLUMNS = {"exact": "exact line", "module": "right module", "wrong": "wrong", "silent": "silent"}


@dataclass(frozen=True)
class Said:
    """What a tool says about a run.

    Attributes:
        words: In short, for people; empty where it says nothing.
        lines: Lines of the script that it names.
        modules: Modules that it names, as headers write them: '' for code outside the model.
        already_bad: ``"input"`` or ``"parameter"`` where it says that one of these was bad before the op.
    """

    words: str = ""
    lines: tuple[int, ...] = ()
    modules: tuple[str, ...] = ()
    already_bad: str = ""


@dataclass(frozen=True)
class Ended:
    """A run that is over."""

    case: str
    stdout: str
    stderr: str
    status: int
    folder: Path


def lines_of(case: str, stack: str) -> list[int]:
    """Lines of the case's script in a printed stack, outermost first."""
    return [int(number) for number in re.findall(rf'/{re.escape(case)}", line (\d+)', stack)]


def traceback_line(ended: Ended) -> tuple[int, ...]:
    """The script's last line in the traceback with which it ended, if it did."""
    _, found, stack = ended.stderr.rpartition("Traceback (most recent call last):\n")
    return tuple(lines_of(ended.case, stack)[-1:]) if found and ended.status else ()


def nothing_said(ended: Ended) -> Said:
    """Without a tool there is only the traceback."""
    return Said()


def anomaly_said(ended: Ended) -> Said:
    """Anomaly mode warns with the stack of the forward call, and with that of the call behind it."""
    detected = re.findall(r"Error detected in (\w+)", ended.stderr)
    stacks = re.findall(r"Traceback of forward call that .*?:\n(.*?)\(Triggered", ended.stderr, re.DOTALL)
    lines = [line for stack in stacks for line in lines_of(ended.case, stack)[-1:]]
    return Said(", ".join(detected), (*lines, *traceback_line(ended)) if detected else ())


def sherlorch_said(ended: Ended) -> Said:
    """The culprits of sherlorch's diagnosis; its module names begin with the name that a model was given."""
    culprit = r"Culprit #\d+: \[\d+\] (\S+) .*?dtype=\S+(?:  \[(\S+)\])?(?:  \((.+):(\d+)\))?"
    found = re.findall(culprit, ended.stderr)
    words = [f"{op} {f'in {module} ' if module else ''}line {line}" for op, module, _, line in found]
    lines = [int(line) for _, _, file, line in found if Path(file).name == ended.case]
    # Without a tag the op ran outside of all modules; that alone is no place.
    modules = [module.partition(".")[2] or module for _, module, _, _ in found if module]
    return Said(", ".join(words), tuple(lines), tuple(modules))


def transformers_said(ended: Ended) -> Said:
    """The module in the last frame that DebugUnderflowOverflow prints, and what was bad of it.

    It ends the script at the line that called the module; where a parameter was bad already, that line has
    done nothing.
    """
    before, detected, frames = ended.stdout.partition("\nDetected inf/nan during batch_number")
    named = re.findall(r"^ {18}(\S*) (\w+)$", frames, re.MULTILINE)
    if not detected or not named:
        return Said()
    path, kind = named[-1]
    bad = re.findall(r"^(\w+)(?:\[[\d\]\[]+)? has (?:nans|infs)$", before, re.MULTILINE)
    modules = [path or ("" if kind.endswith("Loss") else kind)]
    if set(bad) == {"output"}:
        already_bad = ""
    elif set(bad) <= {"input", "output"}:
        already_bad = "input"
        # What was bad before the module began was made by the code around it.
        parent = path.rpartition(".")[0]
        modules += [parent] if parent else [kind for other, kind in named if not other]
    else:
        already_bad = "parameter"
    lines = () if already_bad == "parameter" else traceback_line(ended)
    return Said(f"{path or kind}: {', '.join(dict.fromkeys(bad))}", lines, tuple(modules), already_bad)


def anomprof_said(ended: Ended) -> Said:
    """The first finding."""
    written = ended.folder / "findings.json"
    findings = json.loads(written.read_text(encoding="utf-8"))["findings"] if written.exists() else []
    if not findings:
        return Said()
    first = findings[0]
    place = f"{first['module'] or 'the loop'} line {first['line']}"
    words = f"{first['kind']} {first['phase']} {first['op']} in {place}"
    here = Path(str(first["file"])).name == ended.case
    return Said(words, (first["line"],) if here else (), (str(first["module"]),))


class Server:
    """A process with torch and a tool loaded, whose forks run the scripts."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PEERS / "warm.py"), module],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: list[str], folder: str) -> int:
        """Runs python with these words in a folder and returns the exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"words": words, "folder": folder}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs the scripts has ended; its message stands above")
        return int(answer)


@dataclass(frozen=True)
class Tool:
    """How a tool is switched on, and how its output is read.

    Attributes:
        words: What stands between ``python`` and the script.
        module: What the tool imports.
    """

    words: list[str]
    said: Callable[[Ended], Said]
    module: str = "torch"

    @property
    def package(self) -> str:
        """What has to be installed."""
        return self.module.partition(".")[0]


TOOLS = {
    "no tool": Tool([], nothing_said),
    "anomaly": Tool([str(PEERS / "with_anomaly.py")], anomaly_said),
    "sherlorch": Tool([str(PEERS / "with_sherlorch.py")], sherlorch_said, "sherlorch"),
    "transformers": Tool(
        [str(PEERS / "with_transformers.py")], transformers_said, "transformers.debug_utils"
    ),
    "anomprof": Tool(["-m", "anomprof", "run", "--out", "out"], anomprof_said, "anomprof.cli"),
}


def right_module(header: Header, said: Said) -> bool:
    """Whether the module is right, or the part of the fault that a look at modules can see."""
    phases, modules = header.accepted["phase"], header.accepted["module"]
    if said.already_bad == "input" and "input" in phases:
        return True
    if not modules:  # faults of the whole model: no module is the right one
        return said.already_bad == "parameter" and bool({"optimizer", "parameter"} & set(phases))
    return bool(set(said.modules) & set(modules))


def outcome(header: Header, case: str, said: Said, ended: Ended) -> str:
    """Judges a run; ``failed`` where the tool broke the script and said nothing of its fault."""
    as_planned = ended.status == header.status
    if header.healthy:
        return "false alarm" if said.words else "silent" if as_planned else "failed"
    if not said.words and not as_planned:
        return "failed"
    lines = said.lines if said.words else traceback_line(ended)
    if {(case, line) for line in lines} & set(header.lines):
        return "exact"
    if not said.words:
        return "silent"
    return "module" if right_module(header, said) else "wrong"


def run(name: str, path: Path, servers: dict[str, Server]) -> dict[str, Any]:
    """Runs a case with a tool and returns what is kept of it."""
    header, tool = read_header(path), TOOLS[name]
    if name == "no tool" and not header.status:
        return {"outcome": "silent"}  # it ends by itself, and nothing says anything
    if name not in servers:
        servers[name] = Server(tool.module)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        status = servers[name].run([*tool.words, str(path)], folder)
        stdout, stderr = ((Path(folder) / stream).read_text() for stream in ("stdout", "stderr"))
        ended = Ended(path.name, stdout, stderr, status, Path(folder) / "out")
        said = tool.said(ended)
    return {
        "outcome": outcome(header, path.name, said, ended),
        "said": asdict(said),
        "traceback_line": traceback_line(ended),
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "stdout": stdout[-KEPT_CHARACTERS:],
        "stderr": stderr[-KEPT_CHARACTERS:],
    }


def table(results: dict[str, dict[str, Any]], tools: list[str], healthy: int) -> str:
    """The Markdown table, with a line for each tool that failed somewhere."""
    rows, failures = [], []
    for tool in tools:
        mine = {case: entry["tools"][tool]["outcome"] for case, entry in results.items()}
        counts = Counter(mine.values())
        failed = [case for case, found in mine.items() if found == "failed"]
        faulty = Counter(found for case, found in mine.items() if case.startswith("faulty/"))
        faulty["silent"] += faulty["failed"]
        rows.append([tool, *(faulty[key] for key in COLUMNS), counts["false alarm"]])
        if failed:
            failures.append(f"{tool} broke {len(failed)} scripts and named nothing: {', '.join(failed)}")
    heads = ["tool", *COLUMNS.values(), f"false alarms on {healthy} healthy"]
    return "\n".join([tabulate(rows, heads, tablefmt="github"), *(f"\n{line}" for line in failures)])


def versions() -> dict[str, str]:
    """What was compared."""
    packages = ("torch", "anomprof", "sherlorch", "transformers")
    known = {name for name in packages if importlib.util.find_spec(name)}
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in known}


def read_options() -> argparse.Namespace:
    """Reads the command line and refuses what cannot be run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="cases whose name fits this pattern")
    parser.add_argument("--tools", default=",".join(TOOLS), help="separated by commas; default: all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write what was said, per case")
    parser.add_argument("--anomprof-json", type=Path, help="a file of --json with anomprof's results")
    options = parser.parse_args()
    options.tools = [tool.strip() for tool in options.tools.split(",")]
    options.cases = cases(options.only)
    if not options.cases:
        parser.error(f"no case fits {options.only!r}")
    for tool in options.tools:
        if tool not in TOOLS:
            parser.error(f"no tool is called {tool!r}; known are {', '.join(TOOLS)}")
        package = TOOLS[tool].package
        if importlib.util.find_spec(package) is None:
            parser.error(
                f"{package} is not installed; install it with 'python -m pip install {package}', "
                f"or leave {tool} out with --tools"
            )
    return options


def main() -> None:
    """Runs the cases and prints the table."""
    options = read_options()
    own = threading.local()  # each worker has servers of its own
    kept = json.loads(options.anomprof_json.read_text())["cases"] if options.anomprof_json else {}

    def run_case(path: Path) -> dict[str, Any]:
        case = f"{path.parent.name}/{path.stem}"
        found = {}
        if not hasattr(own, "servers"):
            own.servers = {}
        for tool in options.tools:
            old = kept.get(case, {}).get("tools", {}).get("anomprof") if tool == "anomprof" else None
            found[tool] = old or run(tool, path, own.servers)
        return found

    results: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for path, found in zip(options.cases, pool.map(run_case, options.cases), strict=True):
            case = f"{path.parent.name}/{path.stem}"
            results[case] = {"tools": found}
            told = ", ".join(f"{tool} {entry['outcome']}" for tool, entry in found.items())
            print(f"{case}: {told}", file=sys.stderr, flush=True)
            if options.json:
                content = {"versions": versions(), "cases": results}
                options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    healthy = sum(case.startswith("healthy/") for case in results)
    print(table(results, options.tools, healthy))


if __name__ == "__main__":
    main()
