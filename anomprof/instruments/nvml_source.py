"""Reads an NVIDIA device through NVML (package nvidia-ml-py, module ``pynvml``).

The module is passed in, so that tests can bring their own. NVML counts in milliwatts, millijoules,
megahertz and per cent; what leaves this file is in watts, joules, hertz and shares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anomprof.instruments.telemetry_source import NotOffered


def find_device(nvml: Any, properties: Any) -> Any:
    """Returns the NVML handle of the device that torch describes with ``properties``.

    NVML numbers all devices of the machine, torch only those that ``CUDA_VISIBLE_DEVICES`` leaves, in
    its order. So devices are matched by their UUID or place on the PCI bus, never by number.

    Raises:
        NotOffered: There is no driver, no such device, or only a slice of one (MIG).
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        no_driver = (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded)
        raise NotOffered("no NVIDIA driver" if isinstance(error, no_driver) else _reason(error)) from error
    handle = _find(nvml, properties)
    try:
        split, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return handle  # a device that cannot be split
    if split:
        raise NotOffered(
            "the GPU is split into slices (MIG), and power, clocks and energy are known of the whole GPU only"
        )
    return handle


def _find(nvml: Any, properties: Any) -> Any:
    reason = "torch does not say which device it is"
    uuid = str(getattr(properties, "uuid", "") or "")
    if uuid:
        uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        try:
            return nvml.nvmlDeviceGetHandleByUUID(uuid)
        except nvml.NVMLError as error:
            reason = _reason(error)
    if hasattr(properties, "pci_bus_id"):
        # A function other than 0 does not occur: it would be the sound part of a graphics card.
        domain = getattr(properties, "pci_domain_id", 0)
        bus = f"{domain:08x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
        try:
            return nvml.nvmlDeviceGetHandleByPciBusId(bus)
        except nvml.NVMLError as error:
            reason = _reason(error)
    raise NotOffered(f"NVML does not know the device ({reason})")


class NvmlSource:
    """One NVIDIA device.

    Args:
        nvml: The module ``pynvml``, initialised.
        handle: NVML's handle of the device.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self.name = str(self._ask(nvml.nvmlDeviceGetName))

    def energy_joules(self) -> float:
        """Returns the energy used since the driver was loaded."""
        return float(self._ask(self._nvml.nvmlDeviceGetTotalEnergyConsumption)) / 1e3

    def power_watts(self) -> float:
        """Returns the power drawn; on most devices averaged over the last second."""
        return float(self._ask(self._nvml.nvmlDeviceGetPowerUsage)) / 1e3

    def temperature_celsius(self) -> float:
        """Returns the temperature of the chip."""
        return float(self._ask(self._nvml.nvmlDeviceGetTemperature, self._nvml.NVML_TEMPERATURE_GPU))

    def sm_clock_hertz(self) -> float:
        """Returns the clock of the processors."""
        return float(self._ask(self._nvml.nvmlDeviceGetClockInfo, self._nvml.NVML_CLOCK_SM)) * 1e6

    def memory_clock_hertz(self) -> float:
        """Returns the clock of the memory."""
        return float(self._ask(self._nvml.nvmlDeviceGetClockInfo, self._nvml.NVML_CLOCK_MEM)) * 1e6

    def throttle_reasons(self) -> float:
        """Returns NVML's bits of clocks event reasons."""
        # The older name of the same call serves drivers and bindings from before 2023.
        ask = getattr(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        return float(self._ask(ask or self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons))

    def utilization_ratio(self) -> float:
        """Returns the share of the last sixth to whole second in which a kernel ran."""
        return float(self._ask(self._nvml.nvmlDeviceGetUtilizationRates).gpu) / 100

    def used_bytes(self) -> float:
        """Returns the memory in use by all processes."""
        return float(self._ask(self._nvml.nvmlDeviceGetMemoryInfo).used)

    def ecc_errors_corrected(self) -> float:
        """Returns the memory errors that were corrected since the driver was loaded."""
        return self._ecc_errors(self._nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED)

    def ecc_errors_uncorrected(self) -> float:
        """Returns the memory errors that were not corrected since the driver was loaded."""
        return self._ecc_errors(self._nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)

    def _ecc_errors(self, kind: int) -> float:
        return float(self._ask(self._nvml.nvmlDeviceGetTotalEccErrors, kind, self._nvml.NVML_VOLATILE_ECC))

    def _ask(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(self._handle, *args)
        except self._nvml.NVMLError as error:
            raise NotOffered(_reason(error)) from error


def _reason(error: Exception) -> str:
    # NVML says "Not Supported"; in a sentence of ours that is "not supported by this device".
    text = str(error)
    return "not supported by this device" if text == "Not Supported" else f"NVML: {text}"
