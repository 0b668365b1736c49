"""Load, clocks and free memory of the host, asked for between turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import psutil

from anomprof.environment.memory_limit import available_memory_bytes
from anomprof.record import Sample

# The kernel counts CPU time in hundredths of a second: shorter intervals say little about it.
_SHORTEST_INTERVAL_SECONDS = 0.1


class Host(Protocol):
    """A machine that can be asked for its state; any value may be None where it is not known."""

    def load_average(self) -> float | None:
        """Returns the runnable processes, averaged over one minute."""

    def cpu_seconds(self) -> tuple[float, float, float]:
        """Returns CPU time since some moment: all of it, the busy part, this process and its children."""

    def cpu_clock_hertz(self) -> float | None:
        """Returns the mean clock of the cores."""

    def available_bytes(self) -> float | None:
        """Returns the memory that could still be given out."""


class HostSampler:
    """Samples the host on request; no thread, so that nothing runs beside a timed step."""

    def __init__(self, host: Host | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._host: Host = PsutilHost() if host is None else host
        self._clock = clock
        self._since = (clock(), self._host.cpu_seconds())

    def sample(self) -> list[Sample]:
        """Returns what is known now. The share of others is that since the last call."""
        at = self._clock()
        values = {
            "load_average": self._host.load_average(),
            "other_cpu_ratio": self._other_cpu_ratio(at),
            "cpu_clock_hertz": self._host.cpu_clock_hertz(),
            "available_bytes": self._host.available_bytes(),
        }
        return [Sample(at, "host", name, value) for name, value in values.items() if value is not None]

    def _other_cpu_ratio(self, at: float) -> float | None:
        since, (total, busy, own) = self._since
        if at - since < _SHORTEST_INTERVAL_SECONDS:
            return None
        now = self._host.cpu_seconds()
        self._since = (at, now)
        passed = now[0] - total
        if passed <= 0:
            return None
        # The three counts are not taken at the same instant, so the difference may stray below zero.
        return min(max(((now[1] - busy) - (now[2] - own)) / passed, 0.0), 1.0)


class PsutilHost:
    """The machine we run on."""

    def __init__(self) -> None:
        self._process = psutil.Process()

    def load_average(self) -> float | None:
        """Returns the runnable processes, averaged over one minute."""
        try:
            return float(psutil.getloadavg()[0])
        except OSError:
            return None

    def cpu_seconds(self) -> tuple[float, float, float]:
        """Returns CPU time since the machine started: all, busy, own.

        Time that a hypervisor gave to other machines ("steal") counts as busy: it was taken from us.
        """
        own = _with_reaped_children(self._process)
        for child in self._process.children(recursive=True):
            try:
                own += _with_reaped_children(child)
            except psutil.Error:  # it has ended meanwhile: then its parent has its time
                continue
        times: Any = psutil.cpu_times()
        # Linux counts the time of guests a second time within "user" and "nice".
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        total = sum(times) - guests
        return total, total - times.idle - getattr(times, "iowait", 0.0), own

    def cpu_clock_hertz(self) -> float | None:
        """Returns the mean clock of the cores, None where the system does not tell."""
        try:
            frequency = psutil.cpu_freq()
        except (OSError, NotImplementedError, RuntimeError, AttributeError):
            return None
        return frequency.current * 1e6 if frequency is not None and frequency.current else None

    def available_bytes(self) -> float | None:
        """Returns the memory that this process could still get, limits of a container included."""
        return float(available_memory_bytes())


def _with_reaped_children(process: psutil.Process) -> float:
    times: Any = process.cpu_times()
    # macOS and Windows do not add up the children that have ended.
    reaped = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return float(times.user + times.system + reaped)
