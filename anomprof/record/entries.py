"""What a record holds: the types of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Quantity:
    """What a reading or sample measures.

    Attributes:
        name: As stored; its last word is the unit where there is one.
        adds: Whether values of several sites add up to a meaningful total.
        meaning: One line for people.
    """

    name: str
    adds: bool
    meaning: str


#: Every quantity a record may hold. Writing any other name is a mistake in our code.
QUANTITIES: Mapping[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("calls", True, "how often the op ran in one step"),
        Quantity("self_seconds", True, "CPU time inside the op, its inner ops not counted"),
        Quantity("device_seconds", True, "time of the device kernels that the op launched"),
        Quantity("memory_bytes", True, "bytes allocated minus bytes freed inside the op itself"),
        Quantity("base_bytes", False, "tensors alive before the step: parameters, buffers, optimizer, batch"),
        Quantity("peak_bytes", False, "most tensor bytes alive at one time in a step"),
        Quantity(
            "host_syncs", True, "how often the host had to wait for a value from the device in one step"
        ),
        Quantity("step_seconds", False, "length of the profiled step; never used as a step time"),
        Quantity("power_watts", False, "power drawn by the device"),
        Quantity("temperature_celsius", False, "temperature of the device"),
        Quantity("sm_clock_hertz", False, "clock of the device's processors"),
        Quantity("memory_clock_hertz", False, "clock of the device's memory"),
        Quantity("throttle_reasons", False, "bits of NVML's current clocks event reasons"),
        Quantity("utilization_ratio", False, "share of time in which a kernel ran"),
        Quantity("used_bytes", False, "memory of the device in use by all processes"),
        Quantity("ecc_errors_corrected", False, "corrected memory errors since the driver was loaded"),
        Quantity("ecc_errors_uncorrected", False, "uncorrected memory errors since the driver was loaded"),
        Quantity("load_average", False, "runnable processes on the host, averaged over one minute"),
        Quantity(
            "other_cpu_ratio",
            False,
            "share of the host's CPU time used by other processes since the last sample",
        ),
        Quantity("cpu_clock_hertz", False, "mean clock of the host's cores"),
        Quantity("available_bytes", False, "memory that the host could still give out"),
    )
}


@dataclass(frozen=True)
class Site:
    """Where in a step: these four are the identity; line, shape and dtype would be attributes.

    Empty strings and ordinal 0 mean "all of them": a reading of a whole op has no phase or module.
    """

    phase: str = ""
    module: str = ""
    op: str = ""
    ordinal: int = 0


@dataclass(frozen=True)
class Reading:
    """One value of one quantity at one site of a mode's step."""

    mode: str
    quantity: str
    value: float
    site: Site = Site()
    process: int = 0


@dataclass(frozen=True)
class OpRow:
    """One op in one mode's profiled step.

    Attributes:
        self_seconds: CPU time inside the op without its inner ops.
        device_seconds: Time of the device kernels that it launched.
        memory_bytes: Bytes allocated minus bytes freed inside the op itself.
    """

    op: str
    calls: int
    self_seconds: float
    device_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Sample:
    """One value of one quantity of the machine at one moment.

    Attributes:
        at: Seconds on the clock of ``time.perf_counter()`` (the clock of turns and steps too).
        source: ``"host"`` or a device such as ``"cuda:0"``.
    """

    at: float
    source: str
    quantity: str
    value: float
    process: int = 0


@dataclass(frozen=True)
class Step:
    """One timed training step.

    Attributes:
        started: Seconds on ``time.perf_counter()``.
        wait_seconds: Time waiting for its batch, before the step; not part of ``step_seconds``.
        step_seconds: The whole step, entering and leaving the mode included.
        edge_seconds: The part of ``step_seconds`` spent entering and leaving the mode.
    """

    number: int
    started: float
    wait_seconds: float
    step_seconds: float
    edge_seconds: float


@dataclass(frozen=True)
class Turn:
    """One mode's turn within a round: a settling step and then the timed steps.

    Attributes:
        process: 0-based; each process builds the workload afresh.
        round: 0-based, within the process.
        position: Place within the round's shuffled order.
        started: Seconds on ``time.perf_counter()``.
        facts: ``parameters_digest``, ``buffers_digest``, ``final_loss``, ``settle_seconds``,
            ``energy_joules`` and whatever the mode counted; absent where the turn was cut off.
    """

    process: int
    round: int
    position: int
    mode: str
    started: float
    steps: tuple[Step, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """A saved run, read back.

    Attributes:
        facts: Plan, workload, environment and the like, by key.
        modes: Mode name -> its facts (availability, proof, ...), in the order of the plan.
    """

    facts: Mapping[str, Any]
    modes: Mapping[str, Mapping[str, Any]]
    turns: tuple[Turn, ...]
    readings: tuple[Reading, ...]
    samples: tuple[Sample, ...]
