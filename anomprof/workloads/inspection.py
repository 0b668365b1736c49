"""Checks what a user's factory returned, part by part, before anything is measured."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Sized
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils.data import DataLoader

from anomprof.errors import UserError
from anomprof.names import closest
from anomprof.userfile import raised
from anomprof.workload import Workload

#: A generator can be read only once, and may never end: so many of its batches are kept.
KEPT_BATCHES = 64


def check_workload(result: object, what: str, path: Path) -> Workload:
    """Returns the workload with what can be seen in it added to its facts.

    Args:
        result: What the factory returned.
        what: The factory's name, for messages.
        path: The user's file.

    Raises:
        UserError: It is no workload, or a part of it is wrong.
    """
    if not isinstance(result, Workload):
        raise UserError(f"{what} returned {_described(result)}; return an anomprof.Workload")
    _check_types(result, what)
    _check_optimizer(result, what)
    _check_blocks(result, what)
    facts = {str(key): str(value) for key, value in result.facts.items()}
    if isinstance(result.batches, Iterator):
        # Its code runs only now, so it may raise only now.
        result.batches = _kept(result.batches, what, path)
        facts.setdefault("batches", f"the first {len(result.batches)} of a generator, kept in memory")
    if _is_empty(result.batches, what, path):
        raise UserError(f"the batches of {what} are empty; give at least one batch")
    if result.samples_per_batch is None and isinstance(result.batches, DataLoader):
        result.samples_per_batch = result.batches.batch_size
    rates = sorted({group["lr"] for group in result.optimizer.param_groups if "lr" in group}, key=float)
    words = [type(result.optimizer).__name__, *(f"learning rate {float(rate):g}" for rate in rates)]
    facts.setdefault("optimizer", ", ".join(words))
    facts.setdefault("parameters", f"{result.parameter_count:,}")
    if not result.model.training:
        facts.setdefault("model", f"in evaluation mode, as {what} left it")
    result.facts = facts
    return result


def _check_types(workload: Workload, what: str) -> None:
    for part, value, right, wanted in (
        ("model", workload.model, isinstance(workload.model, nn.Module), "a torch.nn.Module"),
        (
            "optimizer",
            workload.optimizer,
            isinstance(workload.optimizer, torch.optim.Optimizer),
            "a torch.optim.Optimizer",
        ),
        ("loss", workload.loss, callable(workload.loss), "a function of model and batch"),
        ("batches", workload.batches, _is_iterable(workload.batches), "a list or a DataLoader"),
        ("name", workload.name, isinstance(workload.name, str), "a string"),
        ("facts", workload.facts, isinstance(workload.facts, dict), "a dictionary of strings"),
        (
            "samples_per_batch",
            workload.samples_per_batch,
            workload.samples_per_batch is None
            or (isinstance(workload.samples_per_batch, int) and workload.samples_per_batch > 0),
            "a whole number of 1 or more, or None",
        ),
    ):
        if not right:
            raise UserError(
                f"the {part} of the workload that {what} returned is {_described(value)}; give {wanted}"
            )


def _check_optimizer(workload: Workload, what: str) -> None:
    closure = inspect.signature(workload.optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise UserError(
            f"{type(workload.optimizer).__name__} of {what} calls the loss itself, several times a step, "
            "which bench cannot measure; use an optimizer whose step() needs no closure"
        )
    if any(is_lazy(parameter) for parameter in workload.model.parameters()):
        raise UserError(
            f"the model of {what} has lazy parameters without a shape; run it once on a batch before you "
            "return it"
        )
    own = {id(parameter) for parameter in workload.model.parameters() if parameter.requires_grad}
    held = {id(parameter) for group in workload.optimizer.param_groups for parameter in group["params"]}
    if not own & held:
        raise UserError(
            f"the optimizer that {what} returned holds none of the model's trainable parameters; "
            "build it over model.parameters() after the model is on its device"
        )


def _check_blocks(workload: Workload, what: str) -> None:
    if isinstance(workload.checkpoint_blocks, str):
        raise UserError(
            f"checkpoint_blocks of the workload that {what} returned is one string; "
            "give a tuple of module names"
        )
    names = [name for name, _ in workload.model.named_modules() if name]
    for block in workload.checkpoint_blocks:
        if block not in names:
            raise UserError(
                f"checkpoint_blocks of the workload that {what} returned names {block!r}, "
                f"which the model does not have{closest(str(block), names)}; "
                "give names as in model.named_modules()"
            )
    workload.checkpoint_blocks = tuple(workload.checkpoint_blocks)


def _kept(batches: Iterator[Any], what: str, path: Path) -> list[Any]:
    try:
        return list(itertools.islice(batches, KEPT_BATCHES))
    except Exception as error:
        raise raised(error, f"reading the batches of {what}", path) from error


def _is_empty(batches: Any, what: str, path: Path) -> bool:
    if isinstance(batches, Sized):
        try:
            return len(batches) == 0
        except TypeError:  # a DataLoader over an IterableDataset has a length in name only
            pass
    try:
        return next(iter(batches), _NOTHING) is _NOTHING
    except Exception as error:
        raise raised(error, f"reading the batches of {what}", path) from error


_NOTHING = object()


def _is_iterable(value: object) -> bool:
    # iter() would tell for certain, but starts the worker processes of a DataLoader.
    return (isinstance(value, Iterable) or hasattr(value, "__getitem__")) and not isinstance(
        value, str | bytes
    )


def _described(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} ({', '.join(type(item).__name__ for item in value[:6])})"
    return f"a value of type {type(value).__name__}"
