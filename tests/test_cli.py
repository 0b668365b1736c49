"""The command line as a user meets it: real commands in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from anomprof import cli
from anomprof.record import load

FACTORY = """
import torch
from anomprof import Workload

def make(batch_size=4, device="cpu", seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(device)
    batches = [(torch.randn(batch_size, 8), torch.randint(0, 2, (batch_size,))) for _ in range(3)]
    return Workload(
        model, torch.optim.SGD(model.parameters(), lr=0.1), batches,
        lambda model, batch: torch.nn.functional.cross_entropy(model(batch[0]), batch[1]),
        name="two layers", samples_per_batch=batch_size, checkpoint_blocks=("2",),
    )

def raises():
    raise KeyError("no such layer")

def wrong():
    return 42

def lbfgs():
    workload = make()
    workload.optimizer = torch.optim.LBFGS(workload.model.parameters())
    return workload

def lazy():
    workload = make()
    workload.model = torch.nn.Sequential(workload.model, torch.nn.LazyLinear(2))
    return workload

def exits():
    workload = make()
    workload.loss = lambda model, batch: raise_(SystemExit(5))
    return workload

def raise_(error):
    raise error

def prints():
    print("hello from the factory")
    return make()

def endless():
    workload = make()
    workload.loss = lambda model, batch: (_ for _ in ()).throw(RuntimeError("shapes cannot be multiplied"))
    return workload
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(FACTORY)
    return tmp_path


def anomprof(*words, cwd, limit=120, **more):
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", **more.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "anomprof", *map(str, words)],
        cwd=cwd, capture_output=True, text=True, timeout=limit, check=False, env=environ, **more,
    )  # fmt: skip


def sentence(ended, code):
    """The one line that a mistake gets."""
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("anomprof: ")
    return last


def test_bench_measures_a_users_factory_and_writes_everything(folder):
    ended = anomprof("bench", "mine.py:make", "--budget", 6, "--out", "out", "--steps", 3, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in (folder / "out").iterdir()} == {
        "record.sqlite", "report.html", "report.md", "results.json", "steps.csv", "ops.csv",
    }  # fmt: skip
    assert ended.stdout.splitlines()[-1].startswith("Wrote out/report.html")
    assert max(len(line) for line in ended.stdout.splitlines()) <= 80 or "Wrote" in ended.stdout
    results = json.loads((folder / "out" / "results.json").read_text())
    assert results["schema"] == "anomprof.results/1"
    assert results["batch_size"] == 4
    for name in ("baseline", "anomaly", "anomaly-stacks", "profiler", "profiler+anomaly", "clip-norm",
                 "clip-value", "amp-bf16", "amp-fp16", "checkpoint"):  # fmt: skip
        mode = results["modes"][name]
        assert mode["applied"], (name, mode)
        assert mode["proof"]
        assert mode["slowdown"]["low"] <= mode["slowdown"]["ratio"] <= mode["slowdown"]["high"]
        assert mode["slowdown"]["verdict"] in ("slower", "faster", "no difference", "not resolved")
    assert "USDT" not in ended.stderr


def test_report_rebuilds_the_same_files_from_the_record_alone(folder):
    anomprof("bench", "mine.py:make", "--budget", 2, "--out", "out", "--modes", "anomaly", cwd=folder)
    first = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    for name in set(first) - {"record.sqlite"}:
        (folder / "out" / name).unlink()
    (folder / "mine.py").unlink()
    ended = anomprof("report", "out", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == first


def test_fresh_processes_repeat_everything(folder):
    words = ("bench", "mine.py:make", "--budget", 4, "--out", "out", "--modes", "anomaly", "--processes", 2)
    ended = anomprof(*words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    results = json.loads((folder / "out" / "results.json").read_text())
    assert results["processes"] == 2
    assert len(results["modes"]["anomaly"]["slowdown_by_process"]) == 2
    assert results["modes"]["anomaly"]["same_parameters_as_baseline"] is True


def test_compile_runs_in_a_process_of_its_own_beside_the_others(folder):
    words = ("bench", "mine.py:make", "--budget", 3, "--out", "out", "--modes", "anomaly,compile")
    ended = anomprof(*words, cwd=folder, limit=280)
    assert ended.returncode == 0, ended.stderr
    modes = json.loads((folder / "out" / "results.json").read_text())["modes"]
    assert modes["compile"]["applied"], modes["compile"]
    assert "graphs" in modes["compile"]["proof"]
    record = load(folder / "out")
    assert {turn.process for turn in record.turns if turn.mode == "compile"} == {1}
    assert {turn.process for turn in record.turns if turn.mode == "anomaly"} == {0}


def test_a_mode_that_cannot_run_here_is_reported_with_the_reason(folder):
    words = ("bench", "mine.py:make", "--budget", 2, "--out", "out", "--modes", "compile,clip-norm")
    ended = anomprof(*words, cwd=folder, env={"CXX": "no-such-compiler"})
    assert ended.returncode == 0, ended.stderr
    mode = json.loads((folder / "out" / "results.json").read_text())["modes"]["compile"]
    assert mode["available"] is False
    assert "no-such-compiler was not found" in mode["unavailable_because"]


MISTAKES = [
    (("bench", "resnet5"), 2, "did you mean .*resnet50"),
    (("bench", "mine.py:make", "--modes", "anomaly,ampp-bf16"), 2, "did you mean 'amp-bf16'"),
    (("bench", "mine.py:make", "--modes", "amp-bf16+amp-fp16"), 2, "cannot be combined"),
    (("bench", "mine.py:make", "--modes", ""), 2, "--modes is empty"),
    (("bench", "mine.py:make", "--batch-size", "0"), 2, "--batch-size is 0"),
    (("bench", "mine.py:make", "--budget", "0"), 2, "--budget is 0"),
    (("bench", "mine.py:make", "--budget", "nan"), 2, "--budget is nan"),
    (("bench", "mine.py:make", "--budget", "inf"), 2, "--budget is inf"),
    (("bench", "mine.py:make", "--clip-value", "inf"), 2, "--clip-value is inf"),
    (("bench", "mine.py:make", "--steps", "100000000"), 2, "--steps is 100000000"),
    (("bench", "mine.py:make", "--modes", "anomaly+"), 2, "names no mode beside"),
    (("bench", "mine.py:make", "--modes", "baseline+anomaly"), 2, "absence of all modes"),
    (("bench", "mine.py:lbfgs"), 2, "LBFGS.*closure"),
    (("bench", "mine.py:lazy"), 2, "lazy parameters"),
    (("bench", "mine.py:exits"), 3, "SystemExit: 5"),
    (("bench", "mine.py:make", "--steps", "0"), 2, "--steps is 0"),
    (("bench", "mine.py:make", "--processes", "-1"), 2, "--processes is -1"),
    (("bench", "mine.py:make", "--clip-norm", "0"), 2, "--clip-norm is 0"),
    (("bench", "mine.py:make", "--dtype", "int8"), 2, "unknown dtype 'int8'"),
    (("bench", "mine.py:make", "--device", "gpu"), 2, "unknown device 'gpu'"),
    (("bench", "mine.py:make", "--device", "cuda:99"), 3, "cuda:99"),
    (("bench", "mine.py:make", "--image-size", "64"), 2, "image.size"),
    (("bench", "mine.py:make", "--bugdet", "3"), 2, "No such option.*--bugdet"),
    (("bench", "mine.py:make", "--budget", "long"), 2, "'long' is not a valid float"),
    (("bench", "mine.py:raises"), 3, "KeyError.*mine.py:16"),
    (("bench", "mine.py:wrong"), 2, "42|int"),
    (("bench", "mine.py:endless"), 3, r"RuntimeError: shapes cannot be multiplied \(mine.py:45\)"),
    (("bench", "mine.py:nothing"), 2, "nothing.*make"),
    (("bench", "other.py:make"), 2, "other.py"),
    (("bench", "timm:resnet50"), 2, "timm"),
    (("bench", "resnet50", "--data", "nowhere"), 2, "nowhere"),
    (("bench", "gpt", "--data", "."), 2, "file"),
    (("bench",), 2, "Missing argument 'WORKLOAD'"),
    (("report", "nowhere"), 2, "no record in nowhere"),
    (("bemch", "mlp"), 2, "No such command 'bemch'"),
]


@pytest.mark.parametrize(
    ("words", "code", "said"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_a_mistake_is_one_sentence_and_leaves_no_folder(folder, words, code, said, monkeypatch, capfd):
    # In this process: starting torch anew for each would take minutes.
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["anomprof", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capfd.readouterr()
    last = sentence(subprocess.CompletedProcess(words, ended.value.code, out, err), code)
    assert re.search(said, last), last
    assert not (folder / "reports").exists()


def test_a_mistake_ends_a_real_process_with_its_sentence_alone(folder):
    ended = anomprof("bench", "mine.py:make", "--batch-size", "0", cwd=folder)
    assert sentence(ended, 2) == ended.stderr.strip()
    assert ended.stdout == ""


def test_a_folder_with_a_record_is_kept_unless_forced(folder):
    words = ("bench", "mine.py:make", "--budget", 1, "--modes", "baseline", "--out", "out")
    assert anomprof(*words, cwd=folder).returncode == 0
    before = (folder / "out" / "record.sqlite").read_bytes()
    assert "--force" in sentence(anomprof(*words, cwd=folder), 2)
    assert (folder / "out" / "record.sqlite").read_bytes() == before
    assert anomprof(*words, "--force", cwd=folder).returncode == 0


def test_a_run_killed_outright_leaves_a_record_that_report_still_reads(folder):
    words = ["bench", "mine.py:make", "--budget", "60", "--out", "out", "--modes", "anomaly,checkpoint"]
    process = subprocess.Popen(
        [sys.executable, "-m", "anomprof", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_turns(folder / "out", 12)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    ended = anomprof("report", "out", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "did not end by itself" in " ".join(ended.stdout.split())
    assert json.loads((folder / "out" / "results.json").read_text())["modes"]["anomaly"]["slowdown"]


def test_ctrl_c_reports_what_was_measured(folder):
    words = ["bench", "mine.py:make", "--budget", "60", "--out", "out", "--modes", "anomaly"]
    process = subprocess.Popen(
        [sys.executable, "-m", "anomprof", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_for_turns(folder / "out", 12)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "was interrupted" in " ".join(out.split())
    assert (folder / "out" / "report.html").exists()


def wait_for_turns(out: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (out / "record.sqlite").exists():
            try:
                if len(load(out).turns) >= count:
                    return
            except Exception:  # not written yet
                pass
        time.sleep(0.2)
    raise AssertionError("no turns were recorded in time")


def test_a_full_disk_is_one_sentence(folder):
    # SQLite's own limit stands in for the disk's, from the third turn on: the error is the same one.
    script = textwrap.dedent(
        """
        import sys
        from anomprof.record import RecordWriter
        plain = RecordWriter.end_turn
        def end_turn(self, turn_id, facts):
            plain(self, turn_id, facts)
            if turn_id == 3:
                pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
                self._connection.execute(f"PRAGMA max_page_count = {pages}")
        RecordWriter.end_turn = end_turn
        from anomprof.cli import main
        words = "bench mine.py:make --budget 20 --out out --modes anomaly"
        sys.argv = ["anomprof", *words.split()]
        main()
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    last = sentence(ended, 3)
    assert "full" in last
    assert "is kept" in last
    assert len(load(folder / "out").turns) >= 3
    assert anomprof("report", "out", cwd=folder).returncode == 0


def test_list_names_workloads_and_modes_and_why_some_are_not_available(folder):
    ended = anomprof("list", cwd=folder, env={"CXX": "no-such-compiler"})
    assert ended.returncode == 0, ended.stderr
    for name in ("resnet50", "resnet18", "vit", "gpt", "lstm", "mlp", "file.py:factory", "anomaly-stacks"):
        assert name in ended.stdout
    assert "25,557,032" in ended.stdout
    assert "no-such-compiler was not found" in " ".join(ended.stdout.split())
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_help_teaches(folder):
    text = anomprof("bench", "--help", cwd=folder).stdout
    for word in ("--modes", "--budget", "--quick", "--processes", "--data", "my_model.py:make", "resnet50"):
        assert word in text
    assert anomprof("--version", cwd=folder).stdout.startswith("anomprof")


def test_results_go_to_stdout_and_everything_else_to_stderr(folder):
    ended = anomprof(
        "bench", "mine.py:make", "--budget", 1, "--out", "out", "--modes", "clip-norm", cwd=folder
    )
    assert "proof and memory" not in ended.stdout
    assert "proof and memory" in ended.stderr
    assert "Clipping" in ended.stdout
    assert "Clipping" not in ended.stderr


def test_report_never_loads_torch(folder):
    anomprof("bench", "mine.py:make", "--budget", 1, "--out", "out", "--modes", "clip-norm", cwd=folder)
    code = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['anomprof', 'report', 'out'];"
        "from anomprof.cli import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_what_the_users_code_prints_is_not_a_result(folder):
    ended = anomprof(
        "bench", "mine.py:prints", "--budget", 1, "--out", "out", "--modes", "baseline", cwd=folder
    )
    assert "hello from the factory" not in ended.stdout
    assert "hello from the factory" in ended.stderr


def test_a_reader_that_has_gone_loses_no_file(folder):
    command = f"{sys.executable} -m anomprof bench mine.py:make --budget 1 --out out --modes clip-norm | true"
    subprocess.run(["bash", "-c", command], cwd=folder, stderr=subprocess.PIPE, check=True)
    assert (folder / "out" / "report.html").exists()


def test_a_failing_run_gives_an_overwritten_record_back(folder):
    assert (
        anomprof(
            "bench", "mine.py:make", "--budget", 1, "--out", "out", "--modes", "baseline", cwd=folder
        ).returncode
        == 0
    )
    before = (folder / "out" / "record.sqlite").read_bytes()
    sentence(anomprof("bench", "mine.py:endless", "--budget", 1, "--out", "out", "-f", cwd=folder), 3)
    assert (folder / "out" / "record.sqlite").read_bytes() == before
    assert {path.name for path in (folder / "out").iterdir()} >= {"report.html", "results.json"}


def test_an_interrupt_before_anything_was_measured_says_so_alone(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    (folder / "slow.py").write_text("def make():\n    raise KeyboardInterrupt\n")
    monkeypatch.setattr(sys, "argv", ["anomprof", "bench", "slow.py:make"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capfd.readouterr().err.strip() == "anomprof: interrupted"
