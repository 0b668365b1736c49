"""What the launchers share: finding a script's models, and running the script as if it were alone."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook


def watch_models(attach: Callable[[nn.Module], object]) -> None:
    """Calls ``attach`` with every model of the script, before any part of it is first called.

    A hook, and no wrapper around the call: tools that name lines would name the wrapper's.
    """
    known: set[nn.Module] = set()

    def before_call(module: nn.Module, inputs: Any) -> None:
        if module not in known:
            model = _outermost(module)
            known.update(model.modules())
            attach(model)

    register_module_forward_pre_hook(before_call)


def run_script() -> None:
    """Runs the script named first on the command line."""
    del sys.argv[0]
    run_as_main(sys.argv[0])


def run_as_main(path: str) -> None:
    """Runs a script as python does; without the frames of runpy, which would stand in every stack."""
    sys.path[0] = str(Path(path).resolve().parent)
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


def _outermost(module: nn.Module) -> nn.Module:
    """Returns the largest living module that has this one among its parts: scripts may call parts only."""
    living = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
    around = [owner for owner in living if any(part is module for part in owner.modules())]
    return max(around, key=lambda owner: len(list(owner.modules())))
