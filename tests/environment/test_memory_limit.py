from __future__ import annotations

from pathlib import Path

import psutil

from anomprof.environment.control_group import limit_folders
from anomprof.environment.memory_limit import available_memory_bytes, total_memory_bytes

MIB = 2**20


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


VERSION_2 = {
    "proc/self/cgroup": "0::/job/step\n",
    "proc/self/mountinfo": "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
}


def test_without_control_groups_the_machines_memory_counts(tmp_path: Path) -> None:
    total = psutil.virtual_memory().total
    assert total_memory_bytes(tmp_path) == total
    assert 0 < available_memory_bytes(tmp_path) <= total


def test_the_limit_of_version_2_counts_without_files_that_can_be_dropped(tmp_path: Path) -> None:
    # 64 MiB - (40 used - 10 cached files) = 34 MiB.
    root = write(
        tmp_path,
        VERSION_2
        | {
            "sys/fs/cgroup/job/step/memory.max": f"{64 * MIB}\n",
            "sys/fs/cgroup/job/step/memory.current": f"{40 * MIB}\n",
            "sys/fs/cgroup/job/step/memory.stat": f"anon 5\nfile 7\ninactive_file {10 * MIB}\n",
        },
    )
    assert available_memory_bytes(root) == 34 * MIB
    assert total_memory_bytes(root) == 64 * MIB


def test_a_limit_above_the_own_group_binds_too(tmp_path: Path) -> None:
    # Own group: none. Above it: 32 - 30 = 2 MiB.
    root = write(
        tmp_path,
        VERSION_2
        | {
            "sys/fs/cgroup/job/step/memory.max": "max\n",
            "sys/fs/cgroup/job/step/memory.current": f"{20 * MIB}\n",
            "sys/fs/cgroup/job/memory.max": f"{32 * MIB}\n",
            "sys/fs/cgroup/job/memory.current": f"{30 * MIB}\n",
        },
    )
    assert available_memory_bytes(root) == 2 * MIB
    assert total_memory_bytes(root) == 32 * MIB


def test_the_limit_of_version_1_counts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/abc\n",
            "proc/self/mountinfo": (
                "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                "36 31 0:33 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
            ),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{16 * MIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{12 * MIB}\n",
            "sys/fs/cgroup/memory/memory.stat": f"total_inactive_file {MIB}\n",
        },
    )
    # 16 - (12 - 1) = 5 MiB.
    assert available_memory_bytes(root) == 5 * MIB
    assert limit_folders("memory", root) == (root / "sys/fs/cgroup/memory",)


def test_a_group_over_its_limit_has_nothing_left(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        VERSION_2
        | {
            "sys/fs/cgroup/job/step/memory.max": "1000\n",
            "sys/fs/cgroup/job/step/memory.current": "2000\n",
        },
    )
    assert available_memory_bytes(root) == 0


def test_a_container_that_hides_its_own_path_is_limited_all_the_same(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/elsewhere\n",
            "proc/self/mountinfo": "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/memory.max": "3000\n",
            "sys/fs/cgroup/memory.current": "1000\n",
        },
    )
    assert available_memory_bytes(root) == 2000


def test_unreadable_numbers_are_no_limit(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/job/step/memory.max": "?\n", "sys/fs/cgroup/job/step/memory.current": "1\n"}
    assert total_memory_bytes(write(tmp_path, VERSION_2 | files)) == psutil.virtual_memory().total
