"""Puts model, optimizer, batches and loss together into a workload, for pictures and for text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from anomprof.errors import UserError
from anomprof.workload import Workload
from anomprof.workloads.optimizers import build_optimizer
from anomprof.workloads.options import WorkloadOptions, option_of
from anomprof.workloads.pictures import (
    BATCHES,
    PictureFolder,
    PictureFormat,
    PictureLoader,
    synthetic_batches,
)
from anomprof.workloads.text import VOCABULARY, Text, text_batches


@dataclass(frozen=True)
class Defaults:
    """What a workload uses where the user chose nothing.

    Attributes:
        batch_on_cpu: Chosen so that a step stays well under a second on two cores.
        batch_on_accelerator: Chosen so that the device has something to do.
        optimizer: A key of ``OPTIMIZERS``.
        learning_rates: Preferred to an optimizer's usual rate, by the optimizer's name.
    """

    batch_on_cpu: int
    batch_on_accelerator: int
    optimizer: str
    learning_rates: Mapping[str, float] = field(default_factory=dict)

    def batch_size(self, options: WorkloadOptions) -> int:
        """The user's batch size, or the one that fits the device."""
        if options.batch_size is not None:
            return options.batch_size
        return self.batch_on_cpu if options.device.type == "cpu" else self.batch_on_accelerator


def picture_workload(
    name: str,
    make_model: Callable[[int], nn.Module],
    form: PictureFormat,
    classes: int,
    defaults: Defaults,
    options: WorkloadOptions,
    *,
    loss: Callable[[nn.Module, Any], torch.Tensor] | None = None,
) -> Workload:
    """Builds a classifier of pictures.

    A folder with more classes than the model has gets a model with a larger last layer; with fewer
    it stays as it is, so that it remains the model that is known under its name.

    Args:
        name: What reports call it.
        make_model: Takes the number of classes.
        form: The pictures that the model takes.
        classes: The model's own number of classes.
        defaults: Where the user chose nothing.
        options: What the user chose.
        loss: Instead of :func:`classify`.
    """
    refuse(name, "reads pictures", options, "sequence_length")
    batch_size = defaults.batch_size(options)
    # The folder comes first: a mistake in it should not wait for a large model.
    folder = PictureFolder.scan(options.data) if options.data is not None else None
    if folder is not None:
        classes = max(classes, len(folder.classes))
    torch.manual_seed(options.seed)
    model = make_model(classes).to(device=options.device, dtype=options.dtype)
    batches: Iterable[Any]
    if folder is None:
        batches = synthetic_batches(form, batch_size, classes, options.seed, options.device, options.dtype)
        data = f"synthetic: {BATCHES} fixed batches of random pictures"
    else:
        batches = PictureLoader(folder, form, batch_size, options.seed, options.device, options.dtype)
        data = (
            f"folder {folder.path.name}: {count(len(folder.pictures), 'picture')} in "
            f"{count(len(folder.classes), 'class', 'classes')}, read by "
            f"{count(batches.workers, 'worker process', 'worker processes')}"
        )
    facts = {"data": data, "image size": f"{form.size} px", "classes": str(classes)}
    return _assemble(name, model, batches, loss or classify, batch_size, facts, defaults, options)


def language_workload(
    name: str,
    make_model: Callable[[int, int], nn.Module],
    sequence_length: int,
    defaults: Defaults,
    options: WorkloadOptions,
) -> Workload:
    """Builds a model that predicts the next byte of a text.

    Args:
        name: What reports call it.
        make_model: Takes the vocabulary and the sequence length.
        sequence_length: Where the user chose none.
        defaults: Where the user chose nothing else.
        options: What the user chose.
    """
    refuse(name, "reads text", options, "image_size")
    batch_size = defaults.batch_size(options)
    sequence_length = options.sequence_length or sequence_length
    text = Text.from_python() if options.data is None else Text.from_file(options.data)
    batches = text_batches(text, batch_size, sequence_length, options.seed, options.device)
    torch.manual_seed(options.seed)
    model = make_model(VOCABULARY, sequence_length).to(device=options.device, dtype=options.dtype)
    facts = {"data": text.source, "sequence length": f"{sequence_length} bytes"}
    return _assemble(name, model, batches, predict_next, batch_size, facts, defaults, options)


def classify(model: nn.Module, batch: Any) -> torch.Tensor:
    """Cross entropy of a batch of pictures and labels."""
    pictures, labels = batch
    return F.cross_entropy(model(pictures), labels)


def predict_next(model: nn.Module, batch: Any) -> torch.Tensor:
    """Cross entropy of a batch of tokens and the tokens that follow them."""
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


def refuse(name: str, reason: str, options: WorkloadOptions, attribute: str) -> None:
    """Refuses an option that the workload has no use for."""
    if getattr(options, attribute) is not None:
        raise UserError(
            f"{option_of(attribute)} was given, but {name} {reason} and has no use for it; leave it out"
        )


def count(number: int, one: str, many: str | None = None) -> str:
    """Returns "1 picture" or "2 pictures"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _assemble(
    name: str,
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], torch.Tensor],
    batch_size: int,
    facts: dict[str, str],
    defaults: Defaults,
    options: WorkloadOptions,
) -> Workload:
    model.train()
    optimizer, words = build_optimizer(
        options.optimizer or defaults.optimizer, model, defaults.learning_rates
    )
    blocks: tuple[str, ...] = getattr(model, "block_names", ())
    workload = Workload(model, optimizer, batches, loss, name, batch_size, blocks, facts)
    facts |= {"optimizer": words, "parameters": f"{workload.parameter_count:,}"}
    return workload
