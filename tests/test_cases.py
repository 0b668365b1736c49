"""``anomprof run`` names the origin in every script of tests/cases and disturbs none.

Scripts run in forks of one process; cases/score.py runs them in fresh ones.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.score import Header, Outcome, bare_op, cases, disturbed, judge, read_header, run

WARM = Path(__file__).parent / "cases" / "warm.py"


@pytest.fixture(scope="module")
def warm():
    """Runs a case as tests.cases.score.run does."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [sys.executable, str(WARM)], stdin=pipe, stdout=pipe, text=True, env=environment, bufsize=1
    )

    def execute(
        path: Path, folder: Path, watch: list[str] | None = None, *, as_accelerator: bool = False
    ) -> Outcome:
        folder.mkdir()
        out = folder / "out"
        watched = [] if watch is None else ["-m", "anomprof", "run", "--out", str(out), *watch]
        job = {"words": [*watched, str(path)], "folder": str(folder), "as_accelerator": as_accelerator}
        server.stdin.write(json.dumps(job) + "\n")
        status = int(server.stdout.readline())
        found = out / "findings.json"
        findings = json.loads(found.read_text()) if found.exists() else None
        return Outcome(findings, status, (folder / "stdout").read_text(), (folder / "stderr").read_text())

    yield execute
    server.stdin.close()
    assert server.wait(timeout=10) == 0


@pytest.mark.parametrize("path", cases(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_first_finding_is_the_origin_and_nothing_is_disturbed(path: Path, warm, tmp_path) -> None:
    header = read_header(path)
    watched, plain = warm(path, tmp_path / "watched", []), warm(path, tmp_path / "plain")
    assert judge(header, watched.findings) == [], watched.stderr[-2000:]
    assert disturbed(watched, plain) == []
    assert plain.status == header.status, plain.stderr[-2000:]


@pytest.mark.parametrize("path", cases()[::4], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_origin_is_the_same_where_numbers_are_read_once_per_backward(path: Path, warm, tmp_path) -> None:
    watched = warm(path, tmp_path / "watched", [], as_accelerator=True)
    plain = warm(path, tmp_path / "plain")
    assert judge(read_header(path), watched.findings) == [], watched.stderr[-2000:]
    assert disturbed(watched, plain) == []


def test_a_fresh_process_finds_the_same() -> None:
    path = next(path for path in cases() if path.stem == "half-power-distance")
    assert judge(read_header(path), run(path, sys.executable, []).findings) == []


@pytest.mark.parametrize("path", cases(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_case_says_what_is_wrong_with_it(path: Path) -> None:
    header = read_header(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# case: {path.stem}\n")
    assert "\n# note: " in text
    assert len(text.splitlines()) <= 110
    assert header.healthy == (path.parent.name == "healthy")
    assert text.count("# <-- origin") == (0 if header.healthy else 1)
    assert set(header.accepted["kind"]) <= {"none", "nan", "inf", "error"}
    assert set(header.accepted["phase"]) <= {"forward", "backward", "optimizer", "input", "parameter"}
    assert header.healthy or (header.accepted["phase"] and header.accepted["step"])


FAULTY = Header(
    {
        "kind": ["inf"],
        "phase": ["backward"],
        "op": ["SqrtBackward0", "aten::sqrt"],
        "module": ["block.norm", ""],
        "step": ["2", "3"],
        "rank": [],
    },
    [("train.py", 14), ("train.py", 30)],
)
HEALTHY = Header({**{name: [] for name in FAULTY.accepted}, "kind": ["none"]}, [])


def findings(**changes: object) -> dict:
    finding = {
        "kind": "inf",
        "phase": "backward",
        "step": 2,
        "rank": 0,
        "op": "aten::sqrt",
        "node": "SqrtBackward0",
        "backward_op": "aten::div",
        "module": "block.norm",
        "file": "/somewhere/train.py",
        "line": 14,
    }
    return {"verdict": "anomaly", "findings": [{**finding, **changes}]}


def test_an_exact_finding_has_no_difference() -> None:
    assert judge(FAULTY, findings()) == []


@pytest.mark.parametrize("changes", [{"step": 3}, {"line": 30}, {"module": ""}, {"op": None}, {"node": None}])
def test_each_listed_value_is_accepted(changes: dict) -> None:
    assert judge(FAULTY, findings(**changes)) == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kind": "nan"}, "kind"),
        ({"phase": "forward"}, "phase"),
        ({"module": "block"}, "module"),
        ({"step": 1}, "step"),
        ({"step": None}, "step"),
        ({"line": 15}, "line"),
        ({"file": "other.py"}, "line"),
        ({"op": "aten::log", "node": "LogBackward0"}, "op"),
    ],
)
def test_a_difference_is_named(changes: dict, named: str) -> None:
    (problem,) = judge(FAULTY, findings(**changes))
    assert problem.startswith(named)


def test_only_the_first_finding_counts() -> None:
    late = {**findings(), "findings": [*findings(step=0)["findings"], *findings()["findings"]]}
    assert len(judge(FAULTY, late)) == 1


def test_a_missed_fault_is_wrong() -> None:
    assert judge(FAULTY, {"verdict": "clean", "findings": []})


def test_a_run_without_findings_file_is_wrong() -> None:
    assert judge(FAULTY, None)
    assert judge(HEALTHY, None)


def test_a_healthy_case_must_not_be_blamed() -> None:
    assert judge(HEALTHY, {"verdict": "clean", "findings": []}) == []
    assert judge(HEALTHY, findings())
    assert judge(HEALTHY, {"verdict": "anomaly", "findings": []})


def test_the_verdict_must_fit_the_finding() -> None:
    assert judge(FAULTY, {**findings(), "verdict": "clean"})


def test_a_field_without_value_is_not_compared() -> None:
    open_header = Header({**FAULTY.accepted, "op": [], "module": [], "step": []}, [])
    assert judge(open_header, findings(op="x", node="y", module="z", step=9, line=1)) == []


@pytest.mark.parametrize(
    "name", ["aten::_softmax", "aten._softmax.default", "SoftmaxBackward0", "softmax", "aten::softmax"]
)
def test_all_names_of_an_op_are_one(name: str) -> None:
    assert bare_op(name) == "softmax"


def test_names_of_different_ops_stay_different() -> None:
    assert len({bare_op(name) for name in ("aten::log", "aten::log2", "Log1PBackward0", "aten::exp")}) == 4


def test_header_fields_and_marks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "# case: train\n# run: python train.py (exit status 1)\n# kind: nan, inf\n# phase: forward\n"
        "# op:\n# module: a.b, ''\n# step: 4\n# note: long\n#   lines\nx = 1  # <-- origin\n# step: 5\n"
    )
    header = read_header(path)
    assert header.accepted == {
        "kind": ["nan", "inf"],
        "phase": ["forward"],
        "op": [],
        "module": ["a.b", ""],
        "step": ["4"],
        "rank": [],
    }
    assert header.lines == [("train.py", 10)]
    assert header.status == 1


def test_another_output_or_status_is_a_disturbance() -> None:
    plain = Outcome(None, 0, "loss 1\n", "")
    assert disturbed(Outcome({}, 0, "loss 1\n", "words"), plain) == []
    assert disturbed(Outcome({}, 0, "loss 2\n", ""), plain)
    assert disturbed(Outcome({}, 1, "loss 1\n", ""), plain)
