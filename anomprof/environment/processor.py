"""What the system tells about the CPU: model, cores, units, clocks. Linux tells most."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import psutil

from anomprof.environment.control_group import limit_folders, read_numbers
from anomprof.environment.precision import CPU_FLAGS


class Processor:
    """The CPU of this machine.

    Args:
        root: Where the file system starts; tests bring their own.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._cpuinfo = _text(root / "proc/cpuinfo")

    def model(self) -> str:
        """Returns the name of the model, or at least of the architecture."""
        found = re.search(r"^(?:model name|Model|Processor)\s*:\s*(.+)$", self._cpuinfo, re.MULTILINE)
        return found[1].strip() if found else platform.processor() or platform.machine()

    def low_precision(self) -> list[str] | None:
        """Returns the flags of units for bfloat16 and float16; None where the system lists no flags."""
        found = re.search(r"^(?:flags|Features)\s*:(.*)$", self._cpuinfo, re.MULTILINE)
        if found is None:
            return None
        flags = found[1].split()
        return [flag for flag in CPU_FLAGS if flag in flags]

    def is_virtual(self) -> bool:
        """Returns whether a hypervisor runs below us, as far as the CPU tells."""
        found = re.search(r"^flags\s*:(.*)$", self._cpuinfo, re.MULTILINE)
        return found is not None and "hypervisor" in found[1].split()

    def container(self) -> str | None:
        """Returns the kind of container we run in, None where there is no sign of one."""
        if (self._root / ".dockerenv").exists():
            return "docker"
        if (self._root / "run/.containerenv").exists():
            return "podman"
        groups = _text(self._root / "proc/self/cgroup")
        found = re.search(r"kubepods|docker|containerd|lxc|libpod", groups)
        return found[0] if found else None

    def governor(self) -> str | None:
        """Returns the policy that sets the clock, such as ``powersave``."""
        path = self._root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
        return _text(path).strip() or None

    def physical_cores(self) -> int | None:
        """Returns the cores of the machine, hyper-threads not counted."""
        return psutil.cpu_count(logical=False)

    def logical_cores(self) -> int | None:
        """Returns the cores of the machine, hyper-threads counted."""
        return psutil.cpu_count(logical=True)

    def usable_cores(self) -> float:
        """Returns how many cores this process may use; part of a core where a quota says so."""
        try:
            usable = float(len(os.sched_getaffinity(0)))
        except AttributeError:  # only Linux has it
            usable = float(os.cpu_count() or 1)
        for folder in limit_folders("cpu", self._root):
            usable = min(usable, _quota(folder))
        return usable


def _quota(folder: Path) -> float:
    """Returns the cores that a control group may use at a time, infinite without a limit."""
    # Version 2 writes "quota period" into one file, version 1 has two, and -1 for no limit.
    numbers = read_numbers(folder / "cpu.max") or (
        read_numbers(folder / "cpu.cfs_quota_us") + read_numbers(folder / "cpu.cfs_period_us")
    )
    if len(numbers) != 2 or numbers[0] <= 0 or numbers[1] <= 0:
        return float("inf")
    return numbers[0] / numbers[1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
