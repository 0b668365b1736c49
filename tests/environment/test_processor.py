from __future__ import annotations

import os
from pathlib import Path

import pytest

from anomprof.environment.processor import Processor


def machine(root: Path, files: dict[str, str]) -> Processor:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Processor(root)


X86 = (
    "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) 8481C\n"
    "flags\t\t: fpu avx512f avx512_bf16 amx_bf16 hypervisor\n"
)
ARM = "processor\t: 0\nFeatures\t: fp asimd fphp asimdhp bf16 i8mm\n"


def test_an_x86_cpu_is_read_from_its_flags(tmp_path: Path) -> None:
    processor = machine(tmp_path, {"proc/cpuinfo": X86})
    assert processor.model() == "Intel(R) Xeon(R) 8481C"
    assert processor.low_precision() == ["avx512_bf16", "amx_bf16"]
    assert processor.is_virtual()


def test_an_arm_cpu_is_read_from_its_features(tmp_path: Path) -> None:
    processor = machine(tmp_path, {"proc/cpuinfo": ARM})
    assert processor.low_precision() == ["bf16", "fphp", "asimdhp"]
    assert not processor.is_virtual()


def test_a_cpu_without_low_precision_is_not_an_unknown_one(tmp_path: Path) -> None:
    assert machine(tmp_path, {"proc/cpuinfo": "flags : fpu sse2\n"}).low_precision() == []
    assert Processor(tmp_path / "no such machine").low_precision() is None


def test_a_governor_and_a_container_are_seen_where_they_are(tmp_path: Path) -> None:
    policy = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    assert machine(tmp_path, {policy: "powersave\n"}).governor() == "powersave"
    assert machine(tmp_path, {"proc/self/cgroup": "0::/kubepods/pod1\n"}).container() == "kubepods"
    bare = Processor(tmp_path / "bare")
    assert (bare.governor(), bare.container()) == (None, None)


V1 = {"proc/self/cgroup": "2:cpu:/\n", "proc/self/mountinfo": "1 1 0:1 / /cg rw - cgroup cgroup rw,cpu\n"}
V2 = {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n"}


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        (V2 | {"cg/cpu.max": "50000 100000\n"}, 0.5),
        (V1 | {"cg/cpu.cfs_quota_us": "75000\n", "cg/cpu.cfs_period_us": "100000\n"}, 0.75),
        (V2 | {"cg/cpu.max": "max 100000\n"}, None),
        (V1 | {"cg/cpu.cfs_quota_us": "-1\n", "cg/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_a_quota_limits_the_usable_cores(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert machine(tmp_path, files).usable_cores() == (free if quota is None else quota)
