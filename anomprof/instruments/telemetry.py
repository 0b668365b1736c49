"""Power, clocks, temperature and energy of the device beside the run.

A source reads one value at a time from the device; the sampler here turns them into samples, so that
tests can replay a device. What a device does not offer is asked for once and then left alone.
"""

from __future__ import annotations

import importlib
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

from anomprof.instruments.nvml_source import NvmlSource, find_device
from anomprof.instruments.telemetry_source import NotOffered, Source
from anomprof.record import Sample

PERIOD_SECONDS = 0.2

# NVIDIA's energy counter is refreshed only about this often, so that both ends of a window may be
# wrong by as much: one part in five of the shortest window allowed.
_COUNTER_REFRESH_SECONDS = 0.1
SHORTEST_WINDOW_SECONDS = 0.5


class Telemetry(Protocol):
    """What the harness needs of a device's telemetry.

    Attributes:
        unavailable_because: Why there is none; None where there is.
        name: Name of the device, None where there is no telemetry.
        notes: What the device does not offer, and why.
    """

    unavailable_because: str | None
    name: str | None
    notes: list[str]

    def start(self) -> None:
        """Begins to sample beside the run."""

    def stop(self) -> None:
        """Ends sampling; returns once the last sample is in."""

    def energy_joules(self) -> float | None:
        """Returns the device's energy counter, None where it has none."""

    def drain(self) -> list[Sample]:
        """Returns the samples taken since the last drain."""


class NullTelemetry:
    """The telemetry of a device that has none."""

    def __init__(self, reason: str) -> None:
        self.unavailable_because: str | None = reason
        self.name: str | None = None
        self.notes: list[str] = []

    def start(self) -> None:
        """Does nothing."""

    def stop(self) -> None:
        """Does nothing."""

    def energy_joules(self) -> float | None:
        """Returns None."""
        return None

    def drain(self) -> list[Sample]:
        """Returns no samples."""
        return []


class SampledTelemetry:
    """Reads a source every ``period_seconds`` from a thread of its own.

    Args:
        source: Where the values come from.
        label: The samples' source, such as ``"cuda:0"``.
        period_seconds: Time between the end of one round of reads and the start of the next.
        clock: Seconds on the clock that steps are stamped with.
    """

    def __init__(
        self,
        source: Source,
        label: str,
        period_seconds: float = PERIOD_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.unavailable_because: str | None = None
        self.name: str | None = source.name
        self.notes: list[str] = []
        self._label = label
        self._period_seconds = period_seconds
        self._clock = clock
        self._energy_joules: Callable[[], float] | None = source.energy_joules
        self._reads: dict[str, Callable[[], float]] = {
            "power_watts": source.power_watts,
            "temperature_celsius": source.temperature_celsius,
            "sm_clock_hertz": source.sm_clock_hertz,
            "memory_clock_hertz": source.memory_clock_hertz,
            "throttle_reasons": source.throttle_reasons,
            "utilization_ratio": source.utilization_ratio,
            "used_bytes": source.used_bytes,
            "ecc_errors_corrected": source.ecc_errors_corrected,
            "ecc_errors_uncorrected": source.ecc_errors_uncorrected,
        }
        self._samples: list[Sample] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to sample, at once and then every period. Starting twice is starting once."""
        if self._thread is None:
            self._stopped.clear()
            # A daemon: a run that dies without stop() must not hang here.
            self._thread = threading.Thread(target=self._run, name="anomprof telemetry", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends sampling. Samples that were not drained stay."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None

    def energy_joules(self) -> float | None:
        """Returns the energy counter, None where the device has none."""
        if self._energy_joules is None:
            return None
        try:
            return self._energy_joules()
        except NotOffered as error:
            self.notes.append(f"energy: {error}")
            self._energy_joules = None
            return None

    def drain(self) -> list[Sample]:
        """Returns the samples taken since the last drain, oldest first."""
        with self._lock:
            samples, self._samples = self._samples, []
        return samples

    def sample(self) -> None:
        """Reads every quantity once that the device has not refused before."""
        for quantity, read in list(self._reads.items()):
            try:
                value = read()
            except NotOffered as error:
                del self._reads[quantity]
                self.notes.append(f"{quantity}: {error}")
                continue
            with self._lock:
                self._samples.append(Sample(self._clock(), self._label, quantity, value))

    def _run(self) -> None:
        try:
            while self._reads:
                self.sample()
                if self._stopped.wait(self._period_seconds):
                    return
        except Exception as error:  # the run goes on without telemetry, whatever broke it
            self.notes.append(f"sampling ended early: {error!r}")


def open_telemetry(device: torch.device) -> Telemetry:
    """Returns the telemetry of ``device``; never fails: where there is none, that is the reason why."""
    if device.type == "cpu":
        return NullTelemetry("the run is on the CPU")
    if device.type != "cuda":
        return NullTelemetry(f"telemetry reads NVIDIA devices, not devices of type {device.type}")
    if torch.version.hip is not None:
        return NullTelemetry("telemetry reads NVIDIA devices and this is an AMD device")
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return NullTelemetry("nvidia-ml-py is not installed")
    index = torch.cuda.current_device() if device.index is None else device.index
    try:
        # NVML is never shut down: its reads must work until the process ends.
        handle = find_device(nvml, torch.cuda.get_device_properties(index))
        return SampledTelemetry(NvmlSource(nvml, handle), f"cuda:{index}")
    except NotOffered as error:
        return NullTelemetry(str(error))


def energy_per_step(
    start_joules: float | None, end_joules: float | None, steps: int, window_seconds: float
) -> tuple[float | None, str | None]:
    """Returns the energy of one step in joules, or None and the reason for refusing.

    Args:
        start_joules: The energy counter before the first step, the device being idle.
        end_joules: The energy counter after the last step, the device being idle again.
        steps: Number of steps in between.
        window_seconds: Time between the two reads.
    """
    if start_joules is None or end_joules is None:
        return None, "the device has no energy counter"
    if steps < 1:
        return None, "no step was taken"
    if window_seconds < SHORTEST_WINDOW_SECONDS:
        # Rounded down, so that "or more" stays true.
        share = math.floor(100 * _COUNTER_REFRESH_SECONDS / window_seconds) if window_seconds > 0 else 100
        return None, (
            f"a window of {window_seconds:.2f} s is too short: the energy counter is refreshed only "
            f"about every {_COUNTER_REFRESH_SECONDS} s, so the result could be off by {min(share, 100)} % "
            f"or more; at least {SHORTEST_WINDOW_SECONDS} s are needed"
        )
    if end_joules < start_joules:
        return None, "the energy counter went backwards: the driver was reloaded meanwhile"
    if end_joules == start_joules:
        return None, "the energy counter did not move"
    return (end_joules - start_joules) / steps, None
