from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anomprof import report
from anomprof.errors import COULD_NOT_MEASURE, UserError
from tests.report.sample_record import FACTORS, SUMMARIES, UNAVAILABLE, write_record

FILES = ["report.html", "report.md", "results.json", "steps.csv", "ops.csv"]


def modules_loaded_by(code: str) -> set[str]:
    """Runs code in a fresh interpreter and returns the names of the top-level modules it loaded."""
    code += "\nimport sys; print('\\nloaded:', *{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_a_report_is_five_files_beside_the_record(reported: Path) -> None:
    written = {path.name for path in reported.iterdir()}
    assert written == {*FILES, "record.sqlite"}


def test_the_paths_come_back_with_the_page_first(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "run", rounds=2)
    assert report.write(folder) == [folder / name for name in FILES]


def test_writing_a_report_never_loads_torch(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "run", rounds=2)
    code = (
        "import io, pathlib, rich.console, anomprof.report as report\n"
        "from anomprof import criticism, record, results\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "report.write(folder)\n"
        "loaded = record.load(folder)\n"
        "derived = results.derive(loaded)\n"
        "console = rich.console.Console(file=io.StringIO())\n"
        "report.print_summary(derived, criticism.criticise(derived, loaded), console)\n"
    )
    loaded = modules_loaded_by(code)
    assert "anomprof" in loaded
    assert "torch" not in loaded


def test_the_check_for_torch_does_notice_torch() -> None:
    assert "torch" in modules_loaded_by("import anomprof.workload")


def test_a_record_of_100_000_readings_and_steps_is_reported(tmp_path: Path) -> None:
    # 12 rounds x 9 modes (2 rounds for the one that sat out) x 500 steps = 49,000 steps, and 51,000 readings.
    folder = write_record(tmp_path / "run", steps_per_turn=500, extra_readings=51_000)
    begin = time.perf_counter()
    report.write(folder)
    # A bound for a busy machine, no claim about speed.
    assert time.perf_counter() - begin < 10
    assert (folder / "report.html").stat().st_size < 1_000_000


def test_steps_csv_holds_every_timed_step(reported: Path) -> None:
    with (reported / "steps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # 8 modes x 12 rounds x 2 steps, and 2 rounds x 2 steps of the mode that sat out.
    assert len(rows) == 8 * 12 * 2 + 2 * 2
    assert list(rows[0]) == [
        "process", "round", "position", "mode", "step", "wait_seconds", "step_seconds", "edge_seconds",
    ]  # fmt: skip
    assert 0.4 < float(next(row for row in rows if row["mode"] == "baseline")["step_seconds"]) < 0.6


def test_ops_csv_holds_every_op_of_every_profiled_mode(reported: Path) -> None:
    with (reported / "ops.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["mode", "op", "calls", "self_seconds", "device_seconds", "memory_bytes"]
    assert {row["mode"] for row in rows} == set(FACTORS)
    isnan = next(row for row in rows if row["mode"] == "anomaly" and row["op"] == "aten::isnan")
    assert (isnan["calls"], isnan["self_seconds"]) == ("161", "0.049")


def test_results_json_keeps_its_contract(reported: Path) -> None:
    results = json.loads((reported / "results.json").read_text())
    assert results["schema"] == "anomprof.results/1"
    assert results["workload"] == "resnet50"
    assert (results["device"], results["batch_size"], results["dtype"]) == ("cpu", 2, "float32")
    assert (results["rounds"], results["budget_seconds"], results["warnings"]) == (12, 180, [])
    assert results["environment"]["torch_version"] == "2.13.0+cpu"
    assert set(results["modes"]) == set(SUMMARIES)
    anomaly = results["modes"]["anomaly"]
    assert anomaly["applied"] is True
    assert anomaly["proof"] == "161 nodes checked"
    assert set(anomaly["step_seconds"]) == {"median", "low", "high", "n"}
    assert set(anomaly["slowdown"]) >= {"ratio", "low", "high", "verdict"}
    assert anomaly["slowdown"]["verdict"] == "slower"
    assert anomaly["energy_joules_per_step"] is None
    assert anomaly["energy_unavailable_because"] == "no NVIDIA driver"
    assert anomaly["same_parameters_as_baseline"] is True
    assert {"samples_per_second", "peak_memory_bytes", "memory_ratio", "final_loss"} <= set(anomaly)
    assert {"stacks_share", "checks_share", "host_syncs_per_step"} <= set(results["anomaly_cost"])
    assert results["modes"]["amp-fp16"]["unavailable_because"] == UNAVAILABLE["amp-fp16"]


def test_the_same_record_gives_the_same_files(reported: Path) -> None:
    before = {name: (reported / name).read_bytes() for name in FILES}
    report.write(reported)
    assert {name: (reported / name).read_bytes() for name in FILES} == before


def test_a_full_disk_leaves_the_old_file_and_no_half_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_record(tmp_path / "run", rounds=2)
    report.write(folder)
    old = (folder / "report.md").read_bytes()

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("anomprof.report.markdown.render", full)
    with pytest.raises(UserError, match=r"cannot write .*report\.md \(No space left on device\)") as caught:
        report.write(folder)
    assert caught.value.exit_code == COULD_NOT_MEASURE
    assert (folder / "report.md").read_bytes() == old
    assert not list(folder.glob(".*"))
