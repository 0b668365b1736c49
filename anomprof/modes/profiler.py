"""torch's profilers, as their users put them round a step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from anomprof.instruments.stderr_filter import quiet_profiler
from anomprof.modes.mode import Mode, Proof, Seen
from anomprof.workload import Workload


class Profiler(Mode):
    """``torch.profiler.profile()`` around each step, with its default options.

    Starting and stopping it belongs to the step here (reports show it as the edge's share);
    tables and exports made from it do not.
    """

    name = "profiler"
    summary = "torch.profiler around each step"
    keeps_numbers = True
    family = "profiler"
    rank = 10
    holds_profiler = True

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._activities = [ProfilerActivity.CPU]
        self._last: Any = None

    def _session(self) -> Any:
        return torch.profiler.profile(activities=self._activities)

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Chooses the activities of the device, and keeps the profiler's chatter off the terminal."""
        device = next(workload.model.parameters()).device
        self._activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            self._activities.append(ProfilerActivity.CUDA)
        self._last = None
        with quiet_profiler():
            yield

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Profiles one step."""
        with self._session() as session:
            yield
        self._last = session

    def figures(self) -> Mapping[str, Any]:
        """Counts the events of the last step; building them takes time, so never in a timed step."""
        events = self._last.events() if self._last is not None else None
        return {"profiler_events": len(events) if events is not None else 0}

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Shows the events that were recorded."""
        events = int(seen.figures.get("profiler_events", 0))
        return Proof(events > 0, f"{events} events recorded in a step")


class AutogradProfiler(Profiler):
    """``torch.autograd.profiler.profile()`` around each step."""

    name = "autograd-profiler"
    summary = "torch.autograd.profiler around each step"

    def _session(self) -> Any:
        return torch.autograd.profiler.profile()

    def figures(self) -> Mapping[str, Any]:
        """Counts the events of the last step."""
        return {"profiler_events": len(self._last.function_events or ()) if self._last is not None else 0}
