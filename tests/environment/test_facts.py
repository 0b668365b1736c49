from __future__ import annotations

import getpass
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from anomprof.environment.debug_switches import debug_switches
from anomprof.environment.facts import _nvidia_driver, collect
from anomprof.environment.labels import LABELS, describe
from anomprof.instruments.stderr_filter import quiet_profiler

CPU = torch.device("cpu")


def test_every_fact_has_a_label_and_every_label_a_fact() -> None:
    assert set(collect(CPU)) == set(LABELS)


def test_the_facts_are_plain_json() -> None:
    environment = collect(CPU)
    assert json.loads(json.dumps(environment)) == environment


def test_the_facts_are_those_of_this_process() -> None:
    environment = collect(CPU)
    assert environment["torch_version"] == str(torch.__version__)
    assert environment["python_version"].endswith(platform.python_version())
    assert environment["intra_op_threads"] == torch.get_num_threads()
    assert environment["memory_available_bytes"] <= environment["memory_total_bytes"]
    assert (environment["device"], environment["device_type"], environment["device_name"]) == (
        "cpu",
        "cpu",
        None,
    )


def test_the_facts_tell_neither_who_nor_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/home/alice/lib/trace.so")
    monkeypatch.setenv("TORCH_LOGS", "/home/alice/logs")
    text = json.dumps(collect(CPU))
    assert "LD_PRELOAD" in text
    secrets = {"alice", "/home/", str(Path.home()) + "/", str(Path.cwd()), getpass.getuser() + "@"}
    assert [secret for secret in secrets if secret in text] == []


def test_facts_are_shown_with_units_in_the_order_of_the_labels() -> None:
    # 24 * 2**30 bytes are 24 GiB; unknown facts are left out, new ones shown as they stand.
    rows = describe(
        {
            "load_average": 0.25,
            "memory_total_bytes": 24 * 2**30,
            "container": None,
            "onednn": True,
            "cpu_low_precision": [],
            "usable_cores": 1.5,
            "new_fact": 3,
        }
    )
    assert rows == [
        ("CPU units for low precision", "none"),
        ("cores this process may use", "1.5"),
        ("memory", "24.0 GiB"),
        ("load average at the start", "0.25 processes"),
        ("oneDNN", "yes"),
        ("new_fact", "3"),
    ]


def test_labels_and_precision_load_no_torch() -> None:
    code = (
        "import sys, anomprof.environment.labels, anomprof.environment.precision; "
        "print('torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"
    # A test of the test: the file that does load it is seen.
    code = "import sys, anomprof.environment.facts; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "True"


def switches_of_this_process() -> list[str]:
    # Coverage and debuggers set a trace function of their own: not what is tested here.
    return [line for line in debug_switches({}) if "Python" not in line]


def test_nothing_is_reported_where_nothing_was_left_on() -> None:
    assert switches_of_this_process() == []
    assert not [
        line for line in debug_switches({"CUDA_LAUNCH_BLOCKING": "0", "TORCH_LOGS": ""}) if "is set" in line
    ]


def test_variables_are_reported_with_what_they_do() -> None:
    lines = debug_switches({"CUDA_LAUNCH_BLOCKING": "1", "OMP_NUM_THREADS": "4", "HOME": "/home/alice"})
    assert "CUDA_LAUNCH_BLOCKING=1 is set: it waits for every kernel" in lines
    assert not any("OMP_NUM_THREADS" in line for line in lines)  # a choice, not a switch left on
    assert not [line for line in lines if "alice" in line]


def test_anomaly_mode_left_on_is_reported() -> None:
    with torch.autograd.set_detect_anomaly(True):
        assert switches_of_this_process() == ["anomaly mode is already on"]


@pytest.mark.parametrize("profiler", [torch.profiler.profile, torch.autograd.profiler.profile])
def test_a_profiler_left_on_is_reported_until_it_ends(profiler: type) -> None:
    with quiet_profiler():
        session = profiler()
        with session:
            inside = switches_of_this_process()
        after = switches_of_this_process()
    assert inside == ["an autograd profiler is already on"]
    assert after == []


def test_deterministic_algorithms_are_reported() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert switches_of_this_process() == ["deterministic algorithms are on"]
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_lower_precision_of_float32_is_reported() -> None:
    torch.set_float32_matmul_precision("high")
    try:
        (line,) = switches_of_this_process()
        assert "'high'" in line
    finally:
        torch.set_float32_matmul_precision("highest")


def test_development_mode_and_a_trace_function_are_reported() -> None:
    code = """if True:
        import sys
        sys.settrace(lambda *args: None)
        from anomprof.environment.debug_switches import debug_switches
        print(*debug_switches({}), sep="\\n")
    """
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert "Python runs in development mode (-X dev)" in ended.stdout
    assert "a Python trace function is set (debugger or coverage)" in ended.stdout


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n",
            "535.104.05",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs)\n",
            "570.86.15",
        ),
        ("something else\n", None),
    ],
)
def test_the_driver_version_is_read_from_the_kernels_file(
    tmp_path: Path, line: str, version: str | None
) -> None:
    path = tmp_path / "version"
    path.write_text(line)
    assert _nvidia_driver(path) == version


def test_without_a_driver_there_is_no_version(tmp_path: Path) -> None:
    assert _nvidia_driver(tmp_path / "absent") is None


def test_the_switches_come_from_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MKL_VERBOSE", "1")
    assert any("MKL_VERBOSE=1" in line for line in collect(CPU)["debug_switches"])
