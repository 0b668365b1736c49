"""Where telemetry comes from: one method per quantity, one value per call."""

from __future__ import annotations

from typing import Protocol


class NotOffered(Exception):
    """The device, its driver or our permissions do not offer a value; the message says why."""


class Source(Protocol):
    """A device that can be asked for its state.

    Every method may raise :class:`NotOffered`. Units are those of ``anomprof.record.QUANTITIES``.
    """

    name: str

    def energy_joules(self) -> float:
        """Returns the energy used since some moment in the past."""

    def power_watts(self) -> float:
        """Returns the power drawn now."""

    def temperature_celsius(self) -> float:
        """Returns the temperature of the chip."""

    def sm_clock_hertz(self) -> float:
        """Returns the clock of the processors."""

    def memory_clock_hertz(self) -> float:
        """Returns the clock of the memory."""

    def throttle_reasons(self) -> float:
        """Returns the bits that say why the clocks are not higher."""

    def utilization_ratio(self) -> float:
        """Returns the share of recent time in which a kernel ran."""

    def used_bytes(self) -> float:
        """Returns the memory in use by all processes."""

    def ecc_errors_corrected(self) -> float:
        """Returns the memory errors that were corrected since the driver was loaded."""

    def ecc_errors_uncorrected(self) -> float:
        """Returns the memory errors that were not corrected since the driver was loaded."""
