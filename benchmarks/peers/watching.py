"""What the launchers share: finding a script's models, and running the script as if it were alone."""

from __future__ import annotations

import gc
import runpy
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn


def watch_models(
    attach: Callable[[nn.Module], object],
    after: Callable[[nn.Module, Any], None] = lambda module, result: None,
) -> None:
    """Attaches a tool to every model of the script before it is first called.

    Args:
        attach: Called once for every model. That is the outermost module around the one that is called,
            since a script may call parts of its model only.
        after: Called with module and result after every call that is not made inside another module.
    """
    call = nn.Module.__call__
    here = threading.local()
    known: set[nn.Module] = set()

    def watched(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if getattr(here, "inside", False):
            return call(self, *args, **kwargs)
        here.inside = True
        try:
            if self not in known:
                model = _outermost(self)
                known.update(model.modules())
                attach(model)
            result = call(self, *args, **kwargs)
        finally:
            here.inside = False
        after(self, result)
        return result

    nn.Module.__call__ = watched


def run_script() -> None:
    """Runs the script named first on the command line."""
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


def _outermost(module: nn.Module) -> nn.Module:
    """Returns the largest living module that has this one among its parts."""
    living = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
    around = [owner for owner in living if any(part is module for part in owner.modules())]
    return max(around, key=lambda owner: len(list(owner.modules())))
