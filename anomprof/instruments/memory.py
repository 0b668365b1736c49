"""Peak memory and operator rows, from untimed passes of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity

from anomprof.instruments.stderr_filter import quiet_profiler
from anomprof.instruments.trace_reader import TraceSummary, read_trace


def profile_step(step: Callable[[], object], device: torch.device) -> TraceSummary:
    """Runs one step under torch's profiler with memory recording, and reads the exported trace.

    Args:
        step: Takes one step. Gradients of an earlier step should be gone: frees of blocks that are
            older than the profile are not seen.
        device: Whose kernels to record.
    """
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with quiet_profiler(), tempfile.TemporaryDirectory() as folder:
        with torch.profiler.profile(activities=activities, profile_memory=True) as session:
            step()
        path = Path(folder) / "trace.json"
        session.export_chrome_trace(str(path))
        return read_trace(path)


def peak_on_accelerator(step: Callable[[], object], device: torch.device) -> int:
    """Returns the most bytes that the CUDA allocator had given out at one time during a step."""
    torch.cuda.reset_peak_memory_stats(device)
    step()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device)
