"""Modules that the script would find beside itself, had we not loaded others of the same name."""

from __future__ import annotations

import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path
from types import ModuleType

#: Loaded before any script, so that no script can put its own in their place.
_AT_STARTUP = frozenset(
    {
        *(
            "_collections_abc",
            "_sitebuiltins",
            "abc",
            "codecs",
            "encodings",
            "genericpath",
            "importlib",
            "io",
        ),
        *("os", "posixpath", "site", "sitecustomize", "stat", "usercustomize", "zipimport"),
        *("__main__", "anomprof"),
    }
)


def forget_shadowed(entry: str) -> dict[str, ModuleType]:
    """Takes modules out of ``sys.modules`` that plain Python would have found elsewhere.

    A ``queue.py`` or ``click.py`` beside the script goes before the library's, but only if the
    library's is not loaded yet. Our own code keeps what it has.

    Args:
        entry: The first entry of ``sys.path``: the folder of the script.

    Returns:
        What was taken out, by name.
    """
    try:
        beside = {path.name.partition(".")[0] for path in Path(entry).iterdir()}
    except OSError:
        return {}  # an archive; its authors chose the names in it
    loaded = {name.partition(".")[0] for name in sys.modules}
    shadowed = {name for name in (beside & loaded) - _AT_STARTUP if _is_found_in(entry, name)}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in shadowed}


def _is_found_in(entry: str, name: str) -> bool:
    if BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name):
        return False
    spec = PathFinder.find_spec(name, [entry])
    if spec is None or spec.loader is None:  # without a loader it is a mere folder, which comes last
        return False
    return spec.origin != getattr(sys.modules.get(name), "__file__", None)
