"""Whether a set of batches fits into memory."""

from __future__ import annotations

import psutil
import torch

from anomprof.errors import COULD_NOT_MEASURE, UserError


def require_memory(needed_bytes: int, device: torch.device) -> None:
    """Refuses batches that are larger than the host's free memory.

    An accelerator says so itself. On the host nothing does: the system promises memory that it
    lacks and ends the process when it is used.

    Raises:
        UserError: They do not fit.
    """
    if device.type != "cpu":
        return
    available_bytes = psutil.virtual_memory().available
    if needed_bytes > available_bytes:
        raise UserError(
            f"the batches alone would take {needed_bytes / 1e9:,.1f} GB of memory and "
            f"{available_bytes / 1e9:,.1f} GB are free; "
            "choose a smaller --batch-size, or smaller pictures or sequences",
            COULD_NOT_MEASURE,
        )
