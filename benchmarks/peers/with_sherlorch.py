"""Runs a script inside sherlorch.trace(): python with_sherlorch.py SCRIPT.

sherlorch answers questions about a tensor. Asked is wherever a user would notice a bad value: the loss
before each backward, the gradients before and the parameters after each update, what a model returns in
evaluation, and the parameters at the script's end. The first answer that names a culprit is printed.
"""

import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any

import sherlorch
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from watching import run_script, watch_models

# Of each frame it takes file and line only; reading the source around them takes most of the time.
inspect.stack = functools.partial(inspect.stack, 0)

tracker = sherlorch.trace(capture_stack=True)
models: list[nn.Module] = []
answered = False


def ask(tensors: Iterable[Any]) -> None:
    """Asks about each bad tensor until there is an answer; sherlorch does not record this."""
    global answered
    tracker.disable()
    for tensor in tensors:
        if answered or not (isinstance(tensor, torch.Tensor) and tracker.has_issue(tensor)):
            continue
        try:
            report = tracker.diagnose(tensor)
        except KeyError:  # it has not seen how this tensor was made
            continue
        if report.culprits:
            print(report, file=sys.stderr, flush=True)
            answered = True
    tracker.enable()


def attach(model: nn.Module) -> None:
    """Has sherlorch name the modules of this model."""
    tracker.watch(model, name=type(model).__name__)
    model.register_forward_hook(after_call)
    models.append(model)


def after_call(model: nn.Module, inputs: Any, result: Any) -> None:
    """Asks about what a model returns in evaluation."""
    if not (model.training and torch.is_grad_enabled()):
        ask(result if isinstance(result, (tuple, list)) else [result])


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Returns all parameters of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def before_update(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    """Asks about the gradients."""
    tracker.disable()  # even looking at .grad would be recorded as an operation
    ask([parameter.grad for parameter in parameters_of(optimizer)])


def after_update(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    """Asks about the parameters."""
    ask(parameters_of(optimizer))


backward = torch.autograd.backward


def asking_backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
    """Asks about the loss, then goes backward."""
    ask(tensors if isinstance(tensors, (tuple, list)) else [tensors])
    backward(tensors, *args, **kwargs)


torch.autograd.backward = asking_backward
register_optimizer_step_pre_hook(before_update)
register_optimizer_step_post_hook(after_update)
watch_models(attach)
with tracker:
    run_script()
    ask(parameter for model in models for parameter in model.parameters())
