"""torch.compile."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from anomprof.modes.mode import Mode, ModeOptions, Proof, Seen, replaced
from anomprof.sites import compiled_graph_counts
from anomprof.workload import Workload


class Compile(Mode):
    """``torch.compile(model)`` with its default options.

    The model is compiled once, in the first turn, which is not timed. In a process of its own: what
    is compiled once under a dispatch mode stays eager afterwards, and the other way round.
    """

    name = "compile"
    summary = "torch.compile, in a process of its own"
    family = "compile"
    rank = 45
    own_process = True
    observable = False

    def __init__(self, options: ModeOptions) -> None:
        super().__init__(options)
        self._compiled: Any = None
        self._graphs_before = 0

    def unavailable(self, device: torch.device) -> str | None:
        """Inductor needs a C++ compiler on the CPU and Triton on a GPU."""
        if sys.version_info >= (3, 14) and torch.__version__ < "2.10":
            return "this torch cannot compile under this Python"
        if device.type == "cpu":
            compiler = os.environ.get("CXX", "g++")
            if shutil.which(compiler) is None:
                return f"torch.compile needs a C++ compiler and {compiler} was not found"
        elif device.type == "cuda" and not _has_triton():
            return "torch.compile needs Triton, which is not installed"
        return None

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Puts the compiled forward in place for the time of the turn."""
        if self._compiled is None:
            self._graphs_before = compiled_graph_counts()["unique_graphs"]
            self._compiled = torch.compile(workload.model.forward)
        with replaced(workload.model, "forward", self._compiled):
            yield

    def figures(self) -> Mapping[str, Any]:
        """Returns how much was compiled."""
        counts = compiled_graph_counts()
        return {
            "graphs": counts["unique_graphs"] - self._graphs_before,
            "ops_captured": counts["calls_captured"],
        }

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Shows the captured graphs and the compiled regions in the profile."""
        graphs = int(seen.figures.get("graphs", 0))
        captured = int(seen.figures.get("ops_captured", 0))
        regions = sum(
            c for op, c in seen.op_calls.items() if "CompiledFxGraph" in op or "CompiledFunction" in op
        )
        text = f"{graphs} graphs with {captured} ops compiled, {regions} compiled calls in the profiled step"
        return Proof(graphs > 0 and captured > 0, text)


def _has_triton() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True
