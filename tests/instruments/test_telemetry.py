from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from anomprof.instruments.nvml_source import NvmlSource, find_device
from anomprof.instruments.telemetry import (
    NullTelemetry,
    SampledTelemetry,
    energy_per_step,
    open_telemetry,
)
from anomprof.instruments.telemetry_source import NotOffered
from anomprof.record import QUANTITIES, Sample


class ReplayedSource:
    """A device made of recorded values. Each read takes the next; the last one stays.

    A value that is an exception is raised instead.
    """

    name = "Replayed H100"

    def __init__(self, **values: list[Any]) -> None:
        self._values = values
        self.asked: list[str] = []

    def _next(self, quantity: str) -> float:
        self.asked.append(quantity)
        values = self._values.get(quantity, [0.0])
        value = values.pop(0) if len(values) > 1 else values[0]
        if isinstance(value, Exception):
            raise value
        return float(value)

    def energy_joules(self) -> float:
        return self._next("energy_joules")

    def power_watts(self) -> float:
        return self._next("power_watts")

    def temperature_celsius(self) -> float:
        return self._next("temperature_celsius")

    def sm_clock_hertz(self) -> float:
        return self._next("sm_clock_hertz")

    def memory_clock_hertz(self) -> float:
        return self._next("memory_clock_hertz")

    def throttle_reasons(self) -> float:
        return self._next("throttle_reasons")

    def utilization_ratio(self) -> float:
        return self._next("utilization_ratio")

    def used_bytes(self) -> float:
        return self._next("used_bytes")

    def ecc_errors_corrected(self) -> float:
        return self._next("ecc_errors_corrected")

    def ecc_errors_uncorrected(self) -> float:
        return self._next("ecc_errors_uncorrected")


UNSUPPORTED = NotOffered("not supported by this device")


def test_a_round_of_reads_gives_one_sample_per_quantity_of_the_record() -> None:
    source = ReplayedSource(power_watts=[310.5], used_bytes=[2**30])
    telemetry = SampledTelemetry(source, "cuda:1", clock=lambda: 12.5)
    telemetry.sample()
    samples = telemetry.drain()
    assert Sample(12.5, "cuda:1", "power_watts", 310.5) in samples
    assert Sample(12.5, "cuda:1", "used_bytes", 2.0**30) in samples
    assert len(samples) == len({sample.quantity for sample in samples}) == 9
    assert {sample.quantity for sample in samples} <= set(QUANTITIES)
    assert telemetry.name == "Replayed H100"
    assert telemetry.unavailable_because is None


def test_drained_samples_are_not_returned_again() -> None:
    telemetry = SampledTelemetry(ReplayedSource(), "cuda:0")
    telemetry.sample()
    assert telemetry.drain()
    assert telemetry.drain() == []


def test_a_refused_quantity_is_asked_for_once_and_its_reason_is_kept() -> None:
    source = ReplayedSource(ecc_errors_corrected=[UNSUPPORTED, 3.0])
    telemetry = SampledTelemetry(source, "cuda:0")
    telemetry.sample()
    telemetry.sample()
    assert source.asked.count("ecc_errors_corrected") == 1
    assert telemetry.notes == ["ecc_errors_corrected: not supported by this device"]
    # A control: the others were asked twice.
    assert source.asked.count("power_watts") == 2


def test_a_value_may_be_refused_after_it_was_given() -> None:
    source = ReplayedSource(power_watts=[100.0, NotOffered("NVML: GPU is lost"), 200.0])
    telemetry = SampledTelemetry(source, "cuda:0")
    for _ in range(3):
        telemetry.sample()
    assert [sample.value for sample in telemetry.drain() if sample.quantity == "power_watts"] == [100.0]


def test_the_energy_counter_is_none_for_good_where_the_device_has_none() -> None:
    source = ReplayedSource(energy_joules=[UNSUPPORTED, 5.0])
    telemetry = SampledTelemetry(source, "cuda:0")
    assert telemetry.energy_joules() is None
    assert telemetry.energy_joules() is None
    assert telemetry.notes == ["energy: not supported by this device"]


def test_the_energy_counter_is_read_whether_or_not_the_sampler_runs() -> None:
    telemetry = SampledTelemetry(ReplayedSource(energy_joules=[100.0, 160.0]), "cuda:0")
    assert (telemetry.energy_joules(), telemetry.energy_joules()) == (100.0, 160.0)


def test_the_thread_samples_until_it_is_stopped_and_may_start_again() -> None:
    telemetry = SampledTelemetry(ReplayedSource(), "cuda:0", period_seconds=0.005)
    before = threading.active_count()
    telemetry.start()
    telemetry.start()
    assert threading.active_count() == before + 1
    time.sleep(0.1)
    telemetry.stop()
    telemetry.stop()
    assert threading.active_count() == before
    samples = telemetry.drain()
    moments = {sample.at for sample in samples if sample.quantity == "power_watts"}
    assert len(moments) >= 3
    assert all(time.perf_counter() - 10 < at <= time.perf_counter() for at in moments)
    time.sleep(0.03)
    assert telemetry.drain() == []
    telemetry.start()
    telemetry.stop()
    assert telemetry.drain()


def test_a_broken_source_ends_sampling_and_not_the_run() -> None:
    telemetry = SampledTelemetry(
        ReplayedSource(power_watts=[OSError("gone")]), "cuda:0", period_seconds=0.001
    )
    telemetry.start()
    time.sleep(0.05)
    telemetry.stop()
    assert telemetry.notes == ["sampling ended early: OSError('gone')"]


def test_the_null_device_answers_everything() -> None:
    telemetry = NullTelemetry("no NVIDIA driver")
    telemetry.start()
    telemetry.stop()
    assert (telemetry.energy_joules(), telemetry.drain(), telemetry.notes) == (None, [], [])
    assert (telemetry.unavailable_because, telemetry.name) == ("no NVIDIA driver", None)


def test_energy_per_step_is_the_difference_of_the_counter_over_the_steps() -> None:
    # (1600 - 1000) J / 20 steps = 30 J.
    assert energy_per_step(1000.0, 1600.0, 20, 2.0) == (30.0, None)
    # The shortest window that is allowed.
    assert energy_per_step(1000.0, 1100.0, 10, 0.5) == (10.0, None)


@pytest.mark.parametrize(
    ("arguments", "part_of_reason"),
    [
        ((None, None, 10, 2.0), "no energy counter"),
        ((1.0, None, 10, 2.0), "no energy counter"),
        # 0.1 s of refresh in a window of 0.3 s: a third.
        ((1.0, 2.0, 10, 0.3), "off by 33 % or more"),
        ((1.0, 2.0, 10, 0.0), "off by 100 % or more"),
        ((2.0, 1.0, 10, 2.0), "went backwards"),
        ((2.0, 2.0, 10, 2.0), "did not move"),
        ((1.0, 2.0, 0, 2.0), "no step"),
    ],
)
def test_energy_per_step_is_refused_with_a_reason(
    arguments: tuple[float | None, float | None, int, float], part_of_reason: str
) -> None:
    value, reason = energy_per_step(*arguments)
    assert value is None
    assert reason is not None
    assert part_of_reason in reason


class FakeNvml:
    """The part of ``pynvml`` that is used, for a machine with the devices GPU-a and GPU-b."""

    class NVMLError(Exception):
        pass

    class NVMLError_LibraryNotFound(NVMLError):
        pass

    class NVMLError_DriverNotLoaded(NVMLError):
        pass

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0

    def __init__(self, init_error: Exception | None = None, mig: int | None = None) -> None:
        self._init_error = init_error
        self._mig = mig

    def nvmlInit(self) -> None:
        if self._init_error is not None:
            raise self._init_error

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in ("GPU-a", "GPU-b"):
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetHandleByPciBusId(self, bus: str) -> str:
        if bus != "00000000:1b:00.0":
            raise self.NVMLError("Not Found")
        return "GPU-b"

    def nvmlDeviceGetMigMode(self, handle: str) -> tuple[int, int]:
        if self._mig is None:
            raise self.NVMLError("Not Supported")
        return self._mig, self._mig

    def nvmlDeviceGetName(self, handle: str) -> str:
        return f"name of {handle}"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        return 12_500  # millijoules

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 310_250  # milliwatts

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 61

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:
        return {self.NVML_CLOCK_SM: 1_980, self.NVML_CLOCK_MEM: 2_619}[clock]  # megahertz

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return 0x4

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(gpu=87, memory=3)  # per cent

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(total=80, used=30, free=50)

    def nvmlDeviceGetTotalEccErrors(self, handle: str, kind: int, counter: int) -> int:
        if kind == self.NVML_MEMORY_ERROR_TYPE_CORRECTED:
            return 7
        raise self.NVMLError("Not Supported")


def test_what_nvml_counts_becomes_plain_units() -> None:
    source = NvmlSource(FakeNvml(), "GPU-a")
    assert source.name == "name of GPU-a"
    assert source.energy_joules() == 12.5
    assert source.power_watts() == 310.25
    assert source.temperature_celsius() == 61
    assert source.sm_clock_hertz() == 1.98e9
    assert source.memory_clock_hertz() == 2.619e9
    assert source.throttle_reasons() == 4
    assert source.utilization_ratio() == 0.87
    assert source.used_bytes() == 30
    assert source.ecc_errors_corrected() == 7
    with pytest.raises(NotOffered, match="not supported by this device"):
        source.ecc_errors_uncorrected()


@pytest.mark.parametrize(
    ("properties", "handle"),
    [
        (SimpleNamespace(uuid="b"), "GPU-b"),
        (SimpleNamespace(uuid="GPU-a"), "GPU-a"),
        # Decimal 27 is 1b.
        (SimpleNamespace(uuid="?", pci_bus_id=27, pci_domain_id=0, pci_device_id=0), "GPU-b"),
        (SimpleNamespace(pci_bus_id=27, pci_domain_id=0, pci_device_id=0), "GPU-b"),
    ],
)
def test_devices_are_matched_by_uuid_or_else_by_bus(properties: SimpleNamespace, handle: str) -> None:
    assert find_device(FakeNvml(), properties) == handle
    assert find_device(FakeNvml(mig=0), properties) == handle


@pytest.mark.parametrize(
    ("nvml", "properties", "reason"),
    [
        (FakeNvml(FakeNvml.NVMLError_LibraryNotFound()), SimpleNamespace(uuid="a"), "no NVIDIA driver"),
        (FakeNvml(FakeNvml.NVMLError_DriverNotLoaded()), SimpleNamespace(uuid="a"), "no NVIDIA driver"),
        (FakeNvml(FakeNvml.NVMLError("No Permission")), SimpleNamespace(uuid="a"), "NVML: No Permission"),
        (FakeNvml(mig=1), SimpleNamespace(uuid="a"), "MIG"),
        (FakeNvml(), SimpleNamespace(uuid="c"), "does not know the device"),
        (FakeNvml(), SimpleNamespace(), "torch does not say which device"),
    ],
)
def test_a_device_that_cannot_be_found_has_a_reason(
    nvml: FakeNvml, properties: SimpleNamespace, reason: str
) -> None:
    with pytest.raises(NotOffered, match=reason):
        find_device(nvml, properties)


def test_the_cpu_has_no_telemetry() -> None:
    assert open_telemetry(torch.device("cpu")).unavailable_because == "the run is on the CPU"


def test_other_accelerators_have_no_telemetry() -> None:
    reason = open_telemetry(torch.device("mps")).unavailable_because
    assert reason is not None
    assert "mps" in reason


@pytest.fixture
def cuda_device(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """A device that torch calls cuda:0 and the machine GPU-b, as after CUDA_VISIBLE_DEVICES=1."""
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid="b"))
    return torch.device("cuda:0")


def test_the_device_torch_sees_is_the_one_that_is_read(
    monkeypatch: pytest.MonkeyPatch, cuda_device: torch.device
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    telemetry = open_telemetry(cuda_device)
    assert telemetry.name == "name of GPU-b"
    assert isinstance(telemetry, SampledTelemetry)
    telemetry.sample()
    assert {sample.source for sample in telemetry.drain()} == {"cuda:0"}
    assert telemetry.energy_joules() == 12.5
    assert telemetry.notes == ["ecc_errors_uncorrected: not supported by this device"]


def test_a_missing_package_is_a_reason(monkeypatch: pytest.MonkeyPatch, cuda_device: torch.device) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert open_telemetry(cuda_device).unavailable_because == "nvidia-ml-py is not installed"


def test_a_missing_driver_is_a_reason(monkeypatch: pytest.MonkeyPatch, cuda_device: torch.device) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(FakeNvml.NVMLError_LibraryNotFound()))
    assert open_telemetry(cuda_device).unavailable_because == "no NVIDIA driver"


def test_an_amd_device_is_a_reason(monkeypatch: pytest.MonkeyPatch, cuda_device: torch.device) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert "AMD" in str(open_telemetry(cuda_device).unavailable_because)
