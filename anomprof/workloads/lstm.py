"""A recurrent language model of the "small" size of Zaremba et al. 2014 (arXiv:1409.2329)."""

from __future__ import annotations

import torch
from torch import nn


class LSTMLayer(nn.Module):
    """One recurrent layer that starts every batch from zeros and returns nothing but its outputs.

    ``nn.LSTM`` returns a nested tuple, which reentrant checkpointing cannot follow.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape, (batch, tokens, width)."""
        outputs: torch.Tensor = self.lstm(x)[0]
        return outputs


class LSTMLanguageModel(nn.Module):
    """Predicts the next token at every position.

    With a vocabulary of 10,000 words and two layers of 200 it has 4,653,200 parameters::

        embedding      10,000 x 200                     2,000,000
        2 layers of    4 gates x (200 x 200 + 200 x 200
                       + two biases of 200) = 321,600     643,200
        output         200 x 10,000 + 10,000            2,010,000
    """

    def __init__(self, vocabulary: int = 256, width: int = 200, layers: int = 2) -> None:
        super().__init__()
        self.token_embed = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*(LSTMLayer(width) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    @property
    def block_names(self) -> tuple[str, ...]:
        """Qualified names of the recurrent layers."""
        return tuple(f"layers.{index}" for index in range(len(self.layers)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns logits of shape (batch, length, vocabulary) for tokens of shape (batch, length)."""
        logits: torch.Tensor = self.head(self.layers(self.token_embed(tokens)))
        return logits
