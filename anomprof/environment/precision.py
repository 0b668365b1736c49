"""Whether this machine computes in the low precisions of autocast, or only imitates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What /proc/cpuinfo calls the units that compute in each type: x86 and then ARM.
_CPU_UNITS = {
    "bfloat16": ("avx512_bf16", "amx_bf16", "bf16"),
    "float16": ("avx512_fp16", "amx_fp16", "asimdhp"),
}

#: Every flag of a CPU that says something about low precision.
CPU_FLAGS = ("avx512_bf16", "amx_bf16", "avx512_fp16", "amx_fp16", "bf16", "fphp", "asimdhp")

_SINCE_CAPABILITY = {"bfloat16": (8, 0), "float16": (7, 0)}


def low_precision_reason(environment: Mapping[str, Any], dtype: str) -> str | None:
    """Returns why autocast to ``dtype`` is slow on the device of a run.

    Args:
        environment: What ``anomprof.environment.collect`` returned; of a record, too.
        dtype: ``"bfloat16"`` or ``"float16"``, with or without ``torch.`` before it.

    Returns:
        A sentence, or None where the device has the units or nothing is known about it.
    """
    dtype = dtype.removeprefix("torch.")
    if dtype not in _CPU_UNITS:
        return None
    if environment.get("device_type") == "cpu":
        return _on_cpu(environment, dtype)
    if environment.get("device_type") == "cuda":
        return _on_cuda(environment, dtype)
    return None


def _on_cpu(environment: Mapping[str, Any], dtype: str) -> str | None:
    flags = environment.get("cpu_low_precision")
    if flags is None or any(unit in flags for unit in _CPU_UNITS[dtype]):
        return None
    arm = str(environment.get("cpu_architecture", "")).lower() in ("aarch64", "arm64")
    names = " or ".join(unit for unit in _CPU_UNITS[dtype] if ("_" not in unit) == arm)
    return f"this CPU has no {dtype} units ({names}): every {dtype} op is emulated through float32"


def _on_cuda(environment: Mapping[str, Any], dtype: str) -> str | None:
    capability = environment.get("device_capability")
    if not capability:
        return None
    major, minor = (int(part) for part in str(capability).split("."))
    if (major, minor) >= _SINCE_CAPABILITY[dtype]:
        return None
    needed = ".".join(map(str, _SINCE_CAPABILITY[dtype]))
    return (
        f"this GPU (compute capability {capability}) has no tensor cores for {dtype}, "
        f"which came with {needed}: {dtype} saves memory here, but hardly any time"
    )
