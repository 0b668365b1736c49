"""A workload that takes a millisecond a step and has all that a state can hold."""

from __future__ import annotations

import torch
from torch import nn

from anomprof.workload import Workload


class Tiny(nn.Module):
    """Batch norm gives buffers, dropout draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.block = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.5))
        self.last = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.block(self.norm(self.first(x))))


def loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    x, y = batch
    return nn.functional.cross_entropy(model(x), y)


def make(seed: int = 0) -> Workload:
    torch.manual_seed(seed)
    model = Tiny()
    return Workload(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        batches=[(torch.randn(4, 8), torch.randint(0, 2, (4,))) for _ in range(3)],
        loss=loss,
        name="tiny",
        samples_per_batch=4,
        checkpoint_blocks=("block",),
    )
