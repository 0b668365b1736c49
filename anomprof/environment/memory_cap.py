"""Makes running out of memory an error that can be reported, instead of the end of the process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import psutil
import torch

from anomprof.environment.memory_limit import available_memory_bytes

# Room that is left to the rest of the machine.
_RESERVE_BYTES = 256 * 2**20


@contextlib.contextmanager
def memory_capped(device: torch.device) -> Iterator[None]:
    """Limits this process to the memory that is free now, for the time of the context.

    Linux promises memory that it lacks, and kills the process that uses it: then a batch that is too
    large ends without a word. Under a limit, the allocation itself fails, and torch says so.
    Elsewhere, and for accelerators (whose drivers reserve address space without using it), nothing
    is done.
    """
    if device.type != "cpu" or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    in_use = psutil.Process().memory_info().data
    limit = in_use + max(0, available_memory_bytes() - _RESERVE_BYTES)
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    except (ValueError, OSError):  # a sandbox may forbid it; the run itself does not need it
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
