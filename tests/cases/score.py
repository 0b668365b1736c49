#!/usr/bin/env python3
"""Score ``anomprof run`` against training scripts whose fault is known.

    python tests/cases/score.py [--only GLOB] [--jobs N] [--python PY] [--extra "--detect guard"]

Every script in faulty/ and healthy/ says in its header what is wrong with it:

    kind    nan | inf | error: what the first bad value is; none: healthy, nothing may be blamed
    phase   forward | backward | optimizer | input | parameter
    op      a forward op, an autograd node or the op that ran in backward
    module  path below the root module, '' in loop or loss code, a root's own class name
    step    training iteration, from 0
    run     how to start it, with the exit status that is planned for it, when that is not 0

Several values, separated by commas, are all accepted; an empty or missing field is not compared.
``# <-- origin`` marks the line to name, ``# <-- seen`` a line that is accepted too.

Each script runs twice, watched and plain: its standard output and exit status must not differ.
Prints one line a case and the totals.  Exits with 0 when every case is exact and undisturbed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIELDS = ("kind", "phase", "op", "module", "step", "rank")
VERDICTS = {"nan": "anomaly", "inf": "anomaly", "error": "error", "none": "clean"}


@dataclass(frozen=True)
class Header:
    """What a case says about itself."""

    accepted: dict[str, list[str]]
    lines: list[tuple[str, int]]
    status: int = 0

    @property
    def healthy(self) -> bool:
        return self.accepted["kind"] == ["none"]


@dataclass(frozen=True)
class Outcome:
    """What a run of a case left behind."""

    findings: dict | None
    status: int
    stdout: str
    stderr: str


def cases(only: str = "*") -> list[Path]:
    """All cases whose name fits ``only``."""
    files = [*HERE.glob("faulty/*.py"), *HERE.glob("healthy/*.py")]
    return sorted(path for path in files if fnmatch.fnmatch(path.stem, only))


def read_header(path: Path) -> Header:
    text = path.read_text(encoding="utf-8").splitlines()
    first_code = next((n for n, line in enumerate(text) if not line.startswith("#")), len(text))
    fields = dict(re.findall(r"^# ([a-z]+): *(.*)$", "\n".join(text[:first_code]), re.MULTILINE))
    marked = [n for n, line in enumerate(text, 1) if re.search(r"# <-- (origin|seen)\b", line)]
    planned = re.search(r"exit status (\d+)", fields.get("run", ""))
    return Header(
        {
            name: [word.strip().strip("'\"") for word in fields.get(name, "").split(",") if word.strip()]
            for name in FIELDS
        },
        [(path.name, n) for n in marked],
        int(planned.group(1)) if planned else 0,
    )


def bare_op(name: str) -> str:
    """The same word for aten::_softmax, aten._softmax.default and SoftmaxBackward0."""
    name = re.sub(r"^(aten|torch)(::|\.)", "", name)
    name = re.sub(r"Backward\d*$", "", name.split(".")[0].split("::")[-1])
    return name.replace("_", "").lower()


def judge(header: Header, findings: dict | None) -> list[str]:
    """What differs between a case's header and the findings; nothing when they are exact."""
    if findings is None:
        return ["no findings.json"]
    wrong = []
    verdict = VERDICTS[header.accepted["kind"][0]]
    if findings.get("verdict") != verdict:
        wrong.append(f"verdict {findings.get('verdict')!r} instead of {verdict!r}")
    found = findings.get("findings", [])
    if header.healthy:
        blamed = [
            f"blames {f.get('kind')} {f.get('phase')} {f.get('op')} line {f.get('line')}" for f in found[:1]
        ]
        return wrong + blamed
    if not found:
        return [*wrong, "no finding"]
    first = found[0]
    for name in ("kind", "phase", "module", "step", "rank"):
        accepted = header.accepted[name]
        if accepted and str(first.get(name)) not in accepted:
            wrong.append(f"{name} {first.get(name)!r} instead of {' or '.join(map(repr, accepted))}")
    ops = {bare_op(word) for word in header.accepted["op"]}
    named = [str(first[key]) for key in ("op", "node", "backward_op") if first.get(key)]
    if ops and not ops & set(map(bare_op, named)):
        wrong.append(f"op {named} instead of {header.accepted['op']}")
    line = (Path(str(first.get("file"))).name, first.get("line"))
    if header.lines and line not in header.lines:
        wrong.append(f"line {line[1]} of {line[0]} instead of {' or '.join(str(n) for _, n in header.lines)}")
    return wrong


def run(path: Path, python: str, watch: list[str] | None = None, timeout: float = 120) -> Outcome:
    """Run a case, plain, or watched with the options ``watch`` of anomprof run."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        watched = [] if watch is None else ["-m", "anomprof", "run", "--out", str(out), *watch]
        command = [python, *watched, str(path)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return Outcome(None, -1, "", f"no end within {timeout:g} s")
        written = out / "findings.json"
        findings = json.loads(written.read_text(encoding="utf-8")) if written.exists() else None
    return Outcome(findings, done.returncode, done.stdout, done.stderr)


def disturbed(watched: Outcome, plain: Outcome) -> list[str]:
    """What watching changed for the script."""
    changes = []
    if watched.status != plain.status:
        changes.append(f"exit status {watched.status} instead of {plain.status}")
    if watched.stdout != plain.stdout:
        changes.append("another standard output")
    return changes


def score(path: Path, python: str, extra: list[str]) -> tuple[list[str], list[str]]:
    """What is wrong in the findings, and what watching changed."""
    header = read_header(path)
    watched, plain = run(path, python, extra), run(path, python)
    wrong = judge(header, watched.findings)
    if watched.findings is None and watched.stderr.strip():
        wrong.append(watched.stderr.strip().splitlines()[-1][:120])
    changes = disturbed(watched, plain)
    if plain.status != header.status:
        changes.append(f"the plain run ends with {plain.status}, planned was {header.status}")
    return wrong, changes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="cases whose name fits this pattern")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--extra", default="", help="more options for anomprof run")
    options = parser.parse_args()
    paths = cases(options.only)
    if not paths:
        parser.error(f"no case fits {options.only!r}")
    exact = calm = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = pool.map(lambda path: score(path, options.python, shlex.split(options.extra)), paths)
        for path, (wrong, changes) in zip(paths, rows, strict=True):
            exact += not wrong
            calm += not changes
            word = "exact" if not wrong else "wrong"
            print(f"{word:6}{'' if not changes else 'DISTURBED':10}{path.parent.name}/{path.stem}", end="")
            print("".join(f"\n         {problem}" for problem in wrong + changes), flush=True)
    print(f"\n{exact} of {len(paths)} exact, {calm} undisturbed")
    return 0 if exact == calm == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
