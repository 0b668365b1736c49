"""The only file that touches private names of torch.

Everything that torch offers without a promise passes through here, so that a new version of torch
breaks one file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["DispatchMode", "compiled_graph_counts", "op_name"]

#: Base class of modes that see every op below autograd. (torch gives it no types.)
DispatchMode: Any = TorchDispatchMode


def op_name(function: object) -> str:
    """Returns ``aten::add`` for the overload object that a dispatch mode is given."""
    schema = getattr(function, "_schema", None)
    return schema.name if schema is not None else str(function)


def compiled_graph_counts() -> Mapping[str, int]:
    """Returns how many graphs torch.compile has captured in this process, and the ops in them."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled; importing it takes seconds
        return {"unique_graphs": 0, "calls_captured": 0}
    import torch._dynamo.utils

    stats = torch._dynamo.utils.counters["stats"]
    return {"unique_graphs": int(stats["unique_graphs"]), "calls_captured": int(stats["calls_captured"])}
