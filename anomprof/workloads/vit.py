"""A small vision transformer (Dosovitskiy et al. 2020, arXiv:2010.11929; size "Ti" of arXiv:2012.12877)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

PATCH = 16


class Attention(nn.Module):
    """Self-attention in which every token sees every token."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape, (batch, tokens, width)."""
        batch, tokens, width = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        result: torch.Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return result


class FeedForward(nn.Module):
    """Two linear layers, four times as wide between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape."""
        result: torch.Tensor = self.fc2(self.act(self.fc1(x)))
        return result


class Block(nn.Module):
    """Attention and feed-forward, each behind a layer norm and beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        # 1e-6 as in the published models; torch's default is 1e-5.
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = FeedForward(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the input's shape."""
        x = x + self.attn(self.norm1(x))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result


class VisionTransformer(nn.Module):
    """ViT-Ti/16 with a class token: 5,717,416 parameters at 224 px with 1000 classes.

    Args:
        image_size: Height and width of the pictures in pixels, a multiple of 16.
        classes: Outputs of the last layer.
    """

    def __init__(
        self, image_size: int = 224, classes: int = 1000, width: int = 192, depth: int = 12, heads: int = 3
    ) -> None:
        super().__init__()
        patches = (image_size // PATCH) ** 2
        self.patch_embed = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + patches, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)
        for table in (self.cls_token, self.pos_embed):
            nn.init.trunc_normal_(table, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    @property
    def block_names(self) -> tuple[str, ...]:
        """Qualified names of the transformer blocks."""
        return tuple(f"blocks.{index}" for index in range(len(self.blocks)))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Returns logits of shape (batch, classes) for pictures of shape (batch, 3, size, size)."""
        patches = self.patch_embed(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.cls_token.expand(len(pictures), -1, -1), patches), dim=1)
        x = self.norm(self.blocks(tokens + self.pos_embed))
        logits: torch.Tensor = self.head(x[:, 0])
        return logits
