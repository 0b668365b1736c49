"""anomprof: where NaN and Inf of a PyTorch training are made, and what anomaly mode and others cost.

The names below are the public interface. They are loaded on first use, so that reading a record
(``python -m anomprof report``) never imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anomprof.modes.mode import Mode, Proof
    from anomprof.tracing.trace import trace
    from anomprof.workload import Workload

__version__ = "0.1.0"
__all__ = ["Mode", "Proof", "Workload", "__version__", "trace"]

_HOME = {
    "Mode": "anomprof.modes.mode",
    "Proof": "anomprof.modes.mode",
    "Workload": "anomprof.workload",
    "trace": "anomprof.tracing.trace",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'anomprof' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
