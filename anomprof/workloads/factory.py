"""The user's own workload: ``file.py:factory``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from anomprof.errors import UserError
from anomprof.workload import Workload
from anomprof.workloads.failure import raised
from anomprof.workloads.inspection import check_workload
from anomprof.workloads.names import closest
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

    The file's folder is put on ``sys.path``, as Python does for a script, and stays there: the
    user's code may import its neighbours as late as it likes.

    Raises:
        UserError: Any step fails; exit code 3 where the user's code raised.
    """
    file, separator, function_name = spec.rpartition(":")
    if not separator or not function_name:
        file = spec.rstrip(":")
        raise UserError(f"{spec} names no function; add the one that builds the workload, as in {file}:make")
    path = Path(file).resolve()
    if not path.is_file():
        raise UserError(f"there is no file {file}; give the path of a Python file, as in my_model.py:make")
    module = _load(path)
    factory = _function(module, path, function_name)
    arguments = _arguments(factory, f"{path.name}:{function_name}", options)
    # Also for a factory that takes no seed: it should start from the same weights each time.
    torch.manual_seed(options.seed)
    what = f"{path.name}:{function_name}"
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


def _load(path: Path) -> ModuleType:
    # Loader processes that are spawned import the module by this name; a name that is taken
    # (a file called json.py) must not replace what others have imported.
    name = path.stem
    taken = sys.modules.get(name)
    if taken is not None and getattr(taken, "__file__", None) != str(path):
        name = f"anomprof_workload_{name}"
    if sys.path[0] != str(path.parent):
        sys.path.insert(0, str(path.parent))
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise UserError(f"{path.name} is not a Python file; give one, as in my_model.py:make")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    # A script without a guard under "if __name__" may well end itself.
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise raised(error, f"importing {path.name}", path) from error
    return module


def _function(module: ModuleType, path: Path, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    if found is not None:
        raise UserError(
            f"{name} in {path.name} is of type {type(found).__name__} and not a function; "
            "name a function that returns an anomprof.Workload"
        )
    own = [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not key.startswith("_")
    ]
    there = f"there are {', '.join(own)}" if own else "there are no functions in it"
    raise UserError(
        f"{path.name} has no function {name!r}{closest(name, own)}; {there}; "
        "name one that returns an anomprof.Workload"
    )


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
