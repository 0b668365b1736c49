"""Optimizers by name, with learning rates that keep a short run finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

# Adam's usual 1e-8 is zero in float16, and a zero second moment would then divide by zero.
_FLOAT16_EPSILON = 1e-4


@dataclass(frozen=True)
class OptimizerKind:
    """An optimizer and the settings it is used with."""

    make: Callable[..., torch.optim.Optimizer]
    learning_rate: float
    settings: Mapping[str, float] = field(default_factory=dict)
    has_epsilon: bool = True


#: Name -> optimizer. The learning rates are those of its paper or torch's defaults.
OPTIMIZERS: Mapping[str, OptimizerKind] = {
    "sgd": OptimizerKind(torch.optim.SGD, 0.01, {"momentum": 0.9}, has_epsilon=False),
    "adam": OptimizerKind(torch.optim.Adam, 1e-3),
    "adamw": OptimizerKind(torch.optim.AdamW, 1e-3),
    "nadam": OptimizerKind(torch.optim.NAdam, 1e-3),
    "rmsprop": OptimizerKind(torch.optim.RMSprop, 1e-3),
    "adagrad": OptimizerKind(torch.optim.Adagrad, 1e-2),
}


def build_optimizer(
    name: str, model: nn.Module, learning_rates: Mapping[str, float]
) -> tuple[torch.optim.Optimizer, str]:
    """Builds an optimizer over all parameters of ``model``.

    Args:
        name: A key of ``OPTIMIZERS``.
        model: Already on its device and in its dtype.
        learning_rates: What the workload prefers to the optimizer's usual rate, by name.

    Returns:
        The optimizer, and its settings in words.
    """
    kind = OPTIMIZERS[name]
    learning_rate = learning_rates.get(name, kind.learning_rate)
    settings: dict[str, Any] = {"lr": learning_rate, **kind.settings}
    if kind.has_epsilon and any(parameter.dtype == torch.float16 for parameter in model.parameters()):
        settings["eps"] = _FLOAT16_EPSILON
    optimizer = kind.make(model.parameters(), **settings)
    words = [name, *(f"{_WORDS.get(key, key)} {value:g}" for key, value in settings.items())]
    return optimizer, ", ".join(words)


_WORDS = {"lr": "learning rate", "eps": "epsilon"}
