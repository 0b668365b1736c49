"""A decoder-only transformer in the layout of GPT-2 (pre-norm, learned positions, tied embeddings)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class GPTConfig:
    """Size of the model; the default is small enough for a step well under a second on two cores."""

    layers: int = 4
    heads: int = 4
    width: int = 128
    sequence_length: int = 64
    vocabulary: int = 256
    bias: bool = False


class CausalSelfAttention(nn.Module):
    """Self-attention in which a token sees itself and those before it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=config.bias)
        self.proj = nn.Linear(config.width, config.width, bias=config.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape, (batch, tokens, width)."""
        batch, tokens, width = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: torch.Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return result


class FeedForward(nn.Module):
    """Two linear layers, four times as wide between them."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.fc = nn.Linear(config.width, 4 * config.width, bias=config.bias)
        self.act = nn.GELU()
        self.proj = nn.Linear(4 * config.width, config.width, bias=config.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape."""
        result: torch.Tensor = self.proj(self.act(self.fc(x)))
        return result


class Block(nn.Module):
    """Attention and feed-forward, each behind a layer norm and beside a shortcut."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width, bias=config.bias)
        self.mlp = FeedForward(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape."""
        x = x + self.attn(self.norm1(x))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result


class GPT(nn.Module):
    """Predicts the next token at every position.

    Dropout is left out: nanoGPT's character configuration for small machines has none either, and
    a step without random numbers is easier to compare between modes.
    """

    def __init__(self, config: GPTConfig | None = None) -> None:
        super().__init__()
        config = config or GPTConfig()
        self.config = config
        self.token_embed = nn.Embedding(config.vocabulary, config.width)
        self.pos_embed = nn.Embedding(config.sequence_length, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width, bias=config.bias)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)
        for name, parameter in self.named_parameters():
            if name.endswith("proj.weight"):
                # Two shortcuts per block add up, so that the last block's variance stays near the first's.
                nn.init.normal_(parameter, std=0.02 / (2 * config.layers) ** 0.5)
        self.head.weight = self.token_embed.weight

    @property
    def block_names(self) -> tuple[str, ...]:
        """Qualified names of the transformer blocks."""
        return tuple(f"blocks.{index}" for index in range(len(self.blocks)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns logits of shape (batch, length, vocabulary) for tokens of shape (batch, length)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embed(tokens) + self.pos_embed(positions)
        logits: torch.Tensor = self.head(self.norm(self.blocks(x)))
        return logits
