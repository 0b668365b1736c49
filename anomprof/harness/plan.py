"""The plan of a bench run: all that was asked for, as plain values that fit into the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

DEFAULT_BUDGET_SECONDS = 180.0

#: What ``--quick`` means: less than a minute in all, on smaller pictures.
QUICK_BUDGET_SECONDS = 40.0
QUICK_IMAGE_SIZE = 64


@dataclass(frozen=True)
class Plan:
    """What to measure and how.

    Attributes:
        workload: As typed: a built-in name, ``file.py:factory``, ``torchvision:NAME``, ``timm:NAME``.
        modes: Names in the order of the report; the baseline first.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``; already resolved from ``auto``.
        batch_size, image_size, sequence_length, optimizer: None leaves the choice to the workload.
        steps: Timed steps per turn; None chooses from the length of a step.
        budget_seconds: How long measuring may take, warm-up and proofs included.
        processes: Number of fresh processes that repeat everything; 1 measures in this process.
        data: Folder or file with real input; None for the workload's own.
    """

    workload: str
    modes: tuple[str, ...]
    device: str = "cpu"
    dtype: str = "float32"
    batch_size: int | None = None
    image_size: int | None = None
    sequence_length: int | None = None
    optimizer: str | None = None
    seed: int = 0
    steps: int | None = None
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    quick: bool = False
    processes: int = 1
    data: str | None = None
    clip_norm: float = 1.0
    clip_value: float = 0.5

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Plan:
        """Rebuilds a plan; unknown keys (of a newer version) are an error."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown plan entries: {', '.join(unknown)}")
        return cls(**{**values, "modes": tuple(values["modes"])})
