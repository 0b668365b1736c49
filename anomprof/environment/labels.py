"""How reports name and write what ``anomprof.environment.collect`` found; needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Label:
    """How one fact is shown.

    Attributes:
        label: Its name for people.
        unit: What follows the text, "" where there is none.
        text: Writes the value, without the unit.
    """

    label: str
    unit: str = ""
    text: Callable[[Any], str] = str


def _gibibytes(value: Any) -> str:
    return f"{value / 2**30:.1f}"


def _yes_or_no(value: Any) -> str:
    return "yes" if value else "no"


def _listed(value: Any) -> str:
    return ", ".join(value) if value else "none"


def _number(value: Any) -> str:
    return f"{value:g}"


#: Key -> label, in the order of reports.
LABELS: Mapping[str, Label] = {
    "time_utc": Label("measured at (UTC)"),
    "device": Label("device"),
    "device_type": Label("device type"),
    "device_name": Label("device name"),
    "device_memory_bytes": Label("device memory", "GiB", _gibibytes),
    "device_capability": Label("compute capability"),
    "device_driver": Label("device driver"),
    "cpu_model": Label("CPU"),
    "cpu_architecture": Label("CPU architecture"),
    "cpu_capability": Label("CPU kernels that torch uses"),
    "cpu_low_precision": Label("CPU units for low precision", "", _listed),
    "cpu_governor": Label("CPU clock policy"),
    "physical_cores": Label("physical cores", "", _number),
    "logical_cores": Label("logical cores", "", _number),
    "usable_cores": Label("cores this process may use", "", _number),
    "intra_op_threads": Label("threads within an op", "", _number),
    "inter_op_threads": Label("threads between ops", "", _number),
    "memory_total_bytes": Label("memory", "GiB", _gibibytes),
    "memory_available_bytes": Label("memory available at the start", "GiB", _gibibytes),
    "load_average": Label("load average at the start", "processes", _number),
    "virtual_machine": Label("virtual machine", "", _yes_or_no),
    "container": Label("container"),
    "operating_system": Label("operating system"),
    "kernel": Label("kernel"),
    "python_version": Label("Python"),
    "torch_version": Label("torch"),
    "torch_build": Label("torch built for"),
    "cudnn_version": Label("cuDNN"),
    "blas": Label("BLAS"),
    "onednn": Label("oneDNN", "", _yes_or_no),
    "openmp": Label("OpenMP", "", _yes_or_no),
    "numpy_version": Label("NumPy"),
    "anomprof_version": Label("anomprof"),
    "debug_switches": Label("switches left on", "", _listed),
}


def describe(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns label and text of every fact that is known, in the order of reports.

    Keys that this version does not know are shown as they stand: a newer one may have written them.
    """
    rows = []
    for key in [*LABELS, *(key for key in environment if key not in LABELS)]:
        value = environment.get(key)
        if value is not None:
            label = LABELS.get(key, Label(key))
            rows.append((label.label, f"{label.text(value)} {label.unit}".rstrip()))
    return rows
