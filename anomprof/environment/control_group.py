"""Where Linux keeps the limits of this process: control groups, as containers and job systems set them.

Version 2 has one tree for all controllers, version 1 one tree per controller; a machine may have both.
A limit anywhere above a process binds it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def limit_folders(controller: str, root: Path = Path("/")) -> tuple[Path, ...]:
    """Returns the folders whose limits bind this process, its own group first; none without groups.

    Args:
        controller: ``"memory"`` or ``"cpu"``.
        root: Where the file system starts; tests bring their own.
    """
    groups = _groups(root)
    folders: list[Path] = []
    for kind, mounted_group, mount_point, controllers in _mounts(root):
        if kind == "cgroup" and controller not in controllers:
            continue
        group = groups.get(controller if kind == "cgroup" else "")
        if group is None:
            continue
        top = root / mount_point.lstrip("/")
        try:
            inside = PurePosixPath(group).relative_to(mounted_group)
        except ValueError:
            # In a container that hides the group's own path, the mount shows just this group.
            inside = PurePosixPath()
        own = top / inside
        folders += [own, *(parent for parent in own.parents if parent.is_relative_to(top))]
    return tuple(folder for folder in folders if folder.is_dir())


def read_numbers(path: Path) -> list[float]:
    """Returns the numbers in a limit file; "max" is infinite. Empty where there is no such file."""
    try:
        words = path.read_text(encoding="ascii").split()
        return [float("inf") if word == "max" else float(word) for word in words]
    except (OSError, ValueError):
        return []


def _groups(root: Path) -> dict[str, str]:
    """Returns controller -> path of this process's group; the controller of version 2 is ""."""
    groups = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _mounts(root: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yields kind, mounted group, mount point and controllers of every tree of groups."""
    for line in _lines(root / "proc/self/mountinfo"):
        # 35 31 0:32 /group /sys/fs/cgroup/memory rw,relatime [optional ...] - cgroup cgroup rw,memory
        mount, _, rest = line.partition(" - ")
        fields, kinds = mount.split(), rest.split()
        if len(fields) > 4 and len(kinds) > 2 and kinds[0] in ("cgroup", "cgroup2"):
            yield kinds[0], fields[3], fields[4], kinds[2].split(",")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
