"""The multilayer perceptron of the classic Keras MNIST example, without its dropout."""

from __future__ import annotations

import torch
from torch import nn

#: Height and width of an MNIST digit in pixels.
IMAGE_SIZE = 28


class HiddenLayer(nn.Module):
    """A linear layer and its ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns activations of shape (batch, outputs)."""
        result: torch.Tensor = self.act(self.linear(x))
        return result


class MLP(nn.Module):
    """784-512-512-10: 669,706 parameters with 10 classes."""

    def __init__(self, classes: int = 10, width: int = 512) -> None:
        super().__init__()
        self.hidden = nn.Sequential(HiddenLayer(IMAGE_SIZE**2, width), HiddenLayer(width, width))
        self.head = nn.Linear(width, classes)

    @property
    def block_names(self) -> tuple[str, ...]:
        """Qualified names of the hidden layers whose input requires a gradient.

        Not the first: its input is the picture, and reentrant checkpointing gives the parameters
        of such a block no gradient.
        """
        return tuple(f"hidden.{index}" for index in range(1, len(self.hidden)))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Returns logits of shape (batch, classes) for pictures of shape (batch, 1, 28, 28)."""
        logits: torch.Tensor = self.head(self.hidden(pictures.flatten(1)))
        return logits
