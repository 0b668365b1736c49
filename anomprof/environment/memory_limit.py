"""How much memory this process may use: what the machine has, or less where a container limits it."""

from __future__ import annotations

from pathlib import Path

import psutil

from anomprof.environment.control_group import limit_folders, read_numbers

# Limit, use, and the name in memory.stat of cached files that the kernel drops when memory is short:
# they count as used but can be had. Version 2, then version 1.
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_memory_bytes(root: Path = Path("/")) -> int:
    """Returns the bytes that this process could still get."""
    available = float(psutil.virtual_memory().available)
    for limit, used, droppable in _limits(root):
        available = min(available, max(limit - max(used - droppable, 0), 0))
    return int(available)


def total_memory_bytes(root: Path = Path("/")) -> int:
    """Returns the bytes that this process could get if it were alone."""
    return int(min([float(psutil.virtual_memory().total), *(limit for limit, _, _ in _limits(root))]))


def _limits(root: Path) -> list[tuple[float, float, float]]:
    """Returns limit, use and droppable part of use of every group that has a limit."""
    found = []
    for folder in limit_folders("memory", root):
        for limit_name, use_name, droppable_name in _FILES:
            limit, used = read_numbers(folder / limit_name), read_numbers(folder / use_name)
            if limit and used:
                found.append((limit[0], used[0], _stat(folder / "memory.stat", droppable_name)))
    return found


def _stat(path: Path, name: str) -> float:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(float(line.split()[1]) for line in lines if line.startswith(name + " "))
