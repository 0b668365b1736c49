"""Residual networks for pictures (He et al. 2015, arXiv:1512.03385)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

#: Both networks halve the picture five times, rounding up: 224 px -> 7, 33 px -> 2, 32 px -> 1.
TOTAL_STRIDE = 32


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, channels_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(channels_in, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(channels_in, width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's feature maps."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        result: torch.Tensor = self.relu(out + self.downsample(x))
        return result


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut.

    The stride is in the 3x3 convolution ("ResNet v1.5", torchvision's layout), not in the first
    1x1 as in the paper: slightly more accurate and about 5 % more work.
    """

    expansion = 4

    def __init__(self, channels_in: int, width: int, stride: int) -> None:
        super().__init__()
        channels_out = width * self.expansion
        self.conv1 = _convolution(channels_in, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _convolution(width, channels_out, 1)
        self.bn3 = nn.BatchNorm2d(channels_out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(channels_in, channels_out, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's feature maps."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        result: torch.Tensor = self.relu(out + self.downsample(x))
        return result


class ResNet(nn.Module):
    """A residual network with torchvision's module names, so that its weights would fit.

    Args:
        block: What the four stages are made of.
        depths: Blocks per stage.
        classes: Outputs of the last layer.
    """

    def __init__(
        self, block: type[BasicBlock] | type[Bottleneck], depths: Sequence[int], classes: int = 1000
    ) -> None:
        super().__init__()
        self.conv1 = _convolution(3, 64, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(block, 64, 64, depths[0], stride=1)
        self.layer2 = _stage(block, 64 * block.expansion, 128, depths[1], stride=2)
        self.layer3 = _stage(block, 128 * block.expansion, 256, depths[2], stride=2)
        self.layer4 = _stage(block, 256 * block.expansion, 512, depths[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512 * block.expansion, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @property
    def block_names(self) -> tuple[str, ...]:
        """Qualified names of the residual blocks."""
        return tuple(
            name for name, module in self.named_modules() if isinstance(module, BasicBlock | Bottleneck)
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Returns logits of shape (batch, classes) for pictures of shape (batch, 3, height, width)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(pictures))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: torch.Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


def resnet18(classes: int = 1000) -> ResNet:
    """ResNet-18: 11,689,512 parameters with 1000 classes."""
    return ResNet(BasicBlock, (2, 2, 2, 2), classes)


def resnet50(classes: int = 1000) -> ResNet:
    """ResNet-50: 25,557,032 parameters with 1000 classes."""
    return ResNet(Bottleneck, (3, 4, 6, 3), classes)


def _convolution(channels_in: int, channels_out: int, size: int, stride: int = 1) -> nn.Conv2d:
    # No bias: the batch norm that follows each convolution would cancel it.
    return nn.Conv2d(channels_in, channels_out, size, stride, padding=size // 2, bias=False)


def _shortcut(channels_in: int, channels_out: int, stride: int) -> nn.Module:
    if stride == 1 and channels_in == channels_out:
        return nn.Identity()
    return nn.Sequential(_convolution(channels_in, channels_out, 1, stride), nn.BatchNorm2d(channels_out))


def _stage(
    block: type[BasicBlock] | type[Bottleneck], channels_in: int, width: int, depth: int, stride: int
) -> nn.Sequential:
    following = [block(width * block.expansion, width, stride=1) for _ in range(depth - 1)]
    return nn.Sequential(block(channels_in, width, stride), *following)
