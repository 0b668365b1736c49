"""What a user may have left on that changes timings, found before the first step."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.autograd.profiler import profile

# Variable -> what it does where it is neither empty nor "0". Numbers of threads are no such switches:
# they are a choice, and reports show what it came to.
_SWITCHES = {
    "CUDA_LAUNCH_BLOCKING": "waits for every kernel",
    "TORCH_LOGS": "writes logs of torch's compiler and autograd",
    "TORCH_SHOW_CPP_STACKTRACES": "takes a C++ stack for every error",
    "TORCH_DISTRIBUTED_DEBUG": "checks and logs collective calls",
    "TORCH_USE_CUDA_DSA": "adds device-side assertions to kernels",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "allocates every block from the driver",
    "PYTORCH_JIT_LOG_LEVEL": "writes logs of TorchScript",
    "ONEDNN_VERBOSE": "writes a line for every oneDNN primitive",
    "DNNL_VERBOSE": "writes a line for every oneDNN primitive",
    "MKL_VERBOSE": "writes a line for every MKL call",
    "NCCL_DEBUG": "writes logs of NCCL",
    "CUBLAS_WORKSPACE_CONFIG": "limits what cuBLAS may choose from",
    "PYTHONMALLOC": "replaces Python's memory allocator",
    "PYTHONTRACEMALLOC": "traces Python's memory",
    "LD_PRELOAD": "puts a library under every program",
}
# Values that may name a folder stay out of reports, which are passed on.
_PRIVATE = {"LD_PRELOAD", "TORCH_LOGS"}


def debug_switches(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns one line for each switch that is on; empty where torch and Python run as delivered."""
    return _variables(environ) + _torch_switches() + _python_switches()


def _variables(environ: Mapping[str, str]) -> list[str]:
    lines = []
    for name, effect in _SWITCHES.items():
        value = environ.get(name, "")
        if value not in ("", "0"):
            lines.append(f"{name}{'' if name in _PRIVATE else '=' + value} is set: it {effect}")
    return lines


def _torch_switches() -> list[str]:
    cuda = torch.cuda.is_available()
    states = {
        "anomaly mode is already on": torch.is_anomaly_enabled(),
        "an autograd profiler is already on": _profiler_is_on(),
        "deterministic algorithms are on": torch.are_deterministic_algorithms_enabled(),
        "this torch is a debug build": bool(torch.version.debug),
        "oneDNN is switched off (torch.backends.mkldnn.enabled)": not torch.backends.mkldnn.enabled,
        "torch.backends.cudnn.benchmark is on": cuda and torch.backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic is on": cuda and torch.backends.cudnn.deterministic,
        "cuDNN is switched off (torch.backends.cudnn.enabled)": cuda and not torch.backends.cudnn.enabled,
    }
    lines = [line for line, is_on in states.items() if is_on]
    try:
        precision = torch.get_float32_matmul_precision()
        if precision != "highest":
            lines.append(f"float32 matrix products run at {precision!r} precision (TF32 or bfloat16)")
        if cuda and not torch.backends.cudnn.allow_tf32:
            lines.append("TF32 is switched off for convolutions (torch.backends.cudnn.allow_tf32)")
    except RuntimeError:
        # torch refuses to answer once a program has set these in the newer and the older way.
        lines.append(
            "the precision of float32 products was set in two ways at once (fp32_precision, allow_tf32)"
        )
    return lines


def _profiler_is_on() -> bool:
    # torch has no public function for this, so look for a profiler that was entered and has no
    # results yet. ``type() is``: isinstance would wake up lazy objects that only look like one.
    return any(
        type(thing) is profile and thing.entered and thing.kineto_results is None
        for thing in gc.get_objects()
    )


def _python_switches() -> list[str]:
    monitoring: Any = getattr(sys, "monitoring", None)  # Python 3.12 and newer
    tools = [monitoring.get_tool(tool) for tool in range(6)] if monitoring else []
    states = {
        "Python runs in development mode (-X dev)": sys.flags.dev_mode,
        "a Python trace function is set (debugger or coverage)": sys.gettrace() is not None,
        "a Python profile function is set": sys.getprofile() is not None,
        "Python's garbage collector is switched off": not gc.isenabled(),
    }
    lines = [line for line, is_on in states.items() if is_on]
    return lines + [f"the Python monitoring tool {tool!r} is registered" for tool in tools if tool]
