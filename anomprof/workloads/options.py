"""What a user may choose about a workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from anomprof.errors import UserError
from anomprof.names import closest
from anomprof.workloads.optimizers import OPTIMIZERS

_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class WorkloadOptions:
    """What a user may choose about a workload; None means the workload's own default.

    Attributes:
        device: Where the model runs.
        dtype: Of the model's floating-point parameters and buffers, and of pictures.
        batch_size: Samples per batch.
        image_size: Height and width of pictures, in pixels.
        sequence_length: Tokens per sequence.
        optimizer: A key of ``anomprof.workloads.optimizers.OPTIMIZERS``.
        seed: Of the model's initial weights and of the choice and order of the data.
        data: A folder of pictures or a text file.

    Raises:
        UserError: A value makes no sense for any workload.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    batch_size: int | None = None
    image_size: int | None = None
    sequence_length: int | None = None
    optimizer: str | None = None
    seed: int = 0
    data: Path | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "image_size", "sequence_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{option_of(name)} is {value}; give a whole number of 1 or more")
        if self.optimizer is not None and self.optimizer not in OPTIMIZERS:
            raise UserError(
                f"no optimizer is called {self.optimizer!r}{closest(self.optimizer, OPTIMIZERS)}; "
                f"known are {', '.join(OPTIMIZERS)}"
            )
        if self.dtype not in _DTYPES:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
            raise UserError(f"models cannot be trained in {self.dtype}; choose --dtype from {known}")
        # torch.manual_seed takes 64 bits, and so does the database of a record.
        if not 0 <= self.seed < 2**63:
            raise UserError(f"--seed is {self.seed}; give a whole number from 0 to 2**63 - 1")


def option_of(name: str) -> str:
    """The command-line option that sets the attribute ``name``."""
    return "--" + name.replace("_", "-")
