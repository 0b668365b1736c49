"""Turns what was typed after --device and --dtype into what torch understands."""

from __future__ import annotations

import torch

from anomprof.errors import COULD_NOT_MEASURE, UserError

DTYPES = ("float32", "float64", "bfloat16", "float16")


def resolve(text: str) -> torch.device:
    """Returns the device of a name; ``auto`` takes a GPU where there is one.

    Raises:
        UserError: No such kind of device (exit code 2), or not on this machine (3).
    """
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(text)
    except RuntimeError as error:
        raise UserError(f"unknown device {text!r}; give cpu, cuda, cuda:1 or auto") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device {text!r} is not supported; give cpu, cuda, cuda:1 or auto")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            found = (
                f"this machine offers {count} CUDA devices" if count else "torch finds no CUDA device here"
            )
            raise UserError(f"device {text!r}: {found}; give --device cpu or auto", COULD_NOT_MEASURE)
    return device


def check_dtype(text: str) -> str:
    """Returns the name of a dtype that a model can be trained in.

    Raises:
        UserError: Any other name.
    """
    if text not in DTYPES:
        raise UserError(f"unknown dtype {text!r}; give one of {', '.join(DTYPES)}")
    return text
