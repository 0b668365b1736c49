"""The machine and the software that a run was measured on.

Plain JSON values, each under a key of ``anomprof.environment.labels.LABELS``. Nothing here may tell who
ran it or where their files lie: records and reports are passed on.
"""

from __future__ import annotations

import platform
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from anomprof import __version__
from anomprof.environment.debug_switches import debug_switches
from anomprof.environment.memory_limit import available_memory_bytes, total_memory_bytes
from anomprof.environment.processor import Processor

# Typed loosely: some of its functions come without types.
_backends: Any = torch.backends
_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


def collect(device: torch.device) -> dict[str, Any]:
    """Returns everything that a reader needs to judge the times of a run on ``device``.

    A key is always there; its value is None where it is not known or does not apply.
    """
    return {**_software(), **_host(), **_device(device), "debug_switches": debug_switches()}


def _software() -> dict[str, Any]:
    build = torch.__config__.show()
    blas = re.search(r"BLAS_INFO=(\w+)", build)
    return {
        "time_utc": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "anomprof_version": __version__,
        "python_version": f"{platform.python_implementation()} {platform.python_version()}",
        "torch_version": str(torch.__version__),
        "torch_build": _torch_build(),
        "numpy_version": np.__version__,
        "cudnn_version": _cudnn_version(),
        "blas": blas[1] if blas else None,
        "onednn": _backends.mkldnn.is_available(),
        "openmp": _backends.openmp.is_available(),
        "intra_op_threads": torch.get_num_threads(),
        "inter_op_threads": torch.get_num_interop_threads(),
    }


def _host() -> dict[str, Any]:
    processor = Processor()
    return {
        "operating_system": _operating_system(),
        "kernel": f"{platform.system()} {platform.release()}",
        "virtual_machine": processor.is_virtual(),
        "container": processor.container(),
        "cpu_model": processor.model(),
        "cpu_architecture": platform.machine(),
        "cpu_capability": _backends.cpu.get_cpu_capability(),
        "cpu_low_precision": processor.low_precision(),
        "cpu_governor": processor.governor(),
        "physical_cores": processor.physical_cores(),
        "logical_cores": processor.logical_cores(),
        "usable_cores": processor.usable_cores(),
        "memory_total_bytes": total_memory_bytes(),
        "memory_available_bytes": available_memory_bytes(),
        "load_average": _load_average(),
    }


def _device(device: torch.device) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "device": str(device),
        "device_type": device.type,
        "device_name": None,
        "device_memory_bytes": None,
        "device_capability": None,
        "device_driver": None,
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts["device_name"] = properties.name
        facts["device_memory_bytes"] = properties.total_memory
        # On an AMD device the two numbers mean something else.
        if torch.version.hip is None:
            facts["device_capability"] = f"{properties.major}.{properties.minor}"
            facts["device_driver"] = _nvidia_driver()
    return facts


def _torch_build() -> str:
    if torch.version.cuda is not None:
        return f"CUDA {torch.version.cuda}"
    if torch.version.hip is not None:
        return f"ROCm {torch.version.hip}"
    return "CPU"


def _cudnn_version() -> str | None:
    # On a ROCm build this is the version of MIOpen.
    version = _backends.cudnn.version() if _backends.cudnn.is_available() else None
    if version is None or torch.version.hip is not None:
        return None if version is None else str(version)
    # 8907 is 8.9.7, 91002 is 9.10.2.
    thousand = 10_000 if version >= 90_000 else 1_000
    return f"{version // thousand}.{version % thousand // 100}.{version % 100}"


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return f"{platform.system()} {platform.mac_ver()[0] or platform.version()}"


def _load_average() -> float | None:
    try:
        return round(psutil.getloadavg()[0], 2)
    except OSError:
        return None


def _nvidia_driver(path: Path = _NVIDIA_DRIVER) -> str | None:
    # NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...
    try:
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", path.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return found[1] if found else None
