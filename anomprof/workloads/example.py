"""An example of a workload of one's own: copy this file, put your model in, and measure it.

Run it with ``python -m anomprof bench example.py:make``. The function may have any name and may take
any of the arguments ``batch_size``, ``device``, ``dtype``, ``seed``, ``image_size``,
``sequence_length``, ``optimizer`` and ``data``; it gets those that it names. Options of the command
line that the user left out are not passed, so the function's own defaults hold.
"""

import torch
from torch import nn
from torch.nn import functional as F

from anomprof import Workload


def loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Runs the forward pass and returns a scalar."""
    inputs, targets = batch
    return F.mse_loss(model(inputs), targets)


def make(batch_size: int = 16, device: torch.device | str = "cpu", seed: int = 0) -> Workload:
    """Builds the model, its optimizer and its batches."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).to(
        device
    )
    # A list or a DataLoader: every pass over it must yield the same batches.
    batches = [(torch.randn(batch_size, 32), torch.randn(batch_size, 1)) for _ in range(8)]
    return Workload(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
        batches=batches,
        loss=loss,
        name="example",
        samples_per_batch=batch_size,
        # Modules whose activations the modes 'checkpoint' and 'checkpoint-reentrant' compute twice.
        checkpoint_blocks=("2",),
        facts={"data": "random numbers"},
    )
