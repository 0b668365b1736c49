"""The user's own workload: ``file.py:factory``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from anomprof.errors import UserError
from anomprof.userfile import load, raised
from anomprof.workload import Workload
from anomprof.workloads.inspection import check_workload
from anomprof.workloads.options import WorkloadOptions, option_of

#: Arguments that a factory may name.
ARGUMENTS = (
    "batch_size",
    "device",
    "dtype",
    "seed",
    "image_size",
    "sequence_length",
    "optimizer",
    "data",
)

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def build_from_file(spec: str, options: WorkloadOptions) -> Workload:
    """Imports the file, calls the function and checks what it returns.

    Raises:
        UserError: Any step fails; exit code 3 where the user's code raised.
    """
    factory, path = load(spec, "workload factory")
    function_name = spec.rpartition(":")[2]
    what = f"{path.name}:{function_name}"
    if not callable(factory):
        raise UserError(
            f"{what} is of type {type(factory).__name__} and not a function; "
            "name a function that returns an anomprof.Workload"
        )
    arguments = _arguments(factory, what, options)
    # Also for a factory that takes no seed: it should start from the same weights each time.
    torch.manual_seed(options.seed)
    try:
        result = factory(**arguments)
    except (Exception, SystemExit) as error:
        raise raised(error, what, path) from error
    workload = check_workload(result, what, path)
    if workload.name == Workload.name:
        workload.name = what
    workload.facts.setdefault("data", f"as built by {what}")
    device = next(workload.model.parameters()).device
    if device.type != options.device.type:
        workload.facts.setdefault("device", f"{device}, chosen by {what}")
    return workload


def _arguments(factory: Callable[..., Any], what: str, options: WorkloadOptions) -> dict[str, Any]:
    """The arguments that the factory takes; those that the user left out are not among them."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a few callables written in C show no signature
        return {}
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    taken = {name for name, parameter in parameters.items() if parameter.kind in _NAMED}
    arguments = {}
    for name in ARGUMENTS:
        value = getattr(options, name)
        if value is None:
            continue
        if takes_any or name in taken:
            arguments[name] = value
        elif name not in ("device", "dtype", "seed") or (name == "dtype" and value != torch.float32):
            # Device and seed always have a value, so they may not be the user's own words: a
            # factory that takes no device decides itself, and the seed was set before the call.
            raise UserError(
                f"{option_of(name)} was given, but {what} takes no argument {name!r}; "
                "add it to the function or leave the option out"
            )
    for name, parameter in parameters.items():
        required = parameter.default is inspect.Parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        )
        if required and (name not in arguments or parameter.kind not in _NAMED):
            if name in ARGUMENTS and parameter.kind in _NAMED:
                remedy = f"; give {option_of(name)} or give the argument a default value"
            else:
                remedy = ", which anomprof does not know; give it a default value"
            raise UserError(f"{what} requires an argument {name!r}{remedy}")
    return arguments
