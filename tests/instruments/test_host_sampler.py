from __future__ import annotations

import subprocess
import sys

import pytest

from anomprof.instruments.host_sampler import HostSampler, PsutilHost
from anomprof.record import QUANTITIES, Sample


class ReplayedHost:
    """A host made of recorded values; the clock moves on by hand."""

    def __init__(self, *cpu_seconds: tuple[float, float, float]) -> None:
        self.now = 100.0
        self.clock_hertz: float | None = 3e9
        self._cpu_seconds = list(cpu_seconds)

    def load_average(self) -> float | None:
        return 1.5

    def cpu_seconds(self) -> tuple[float, float, float]:
        return self._cpu_seconds.pop(0)

    def cpu_clock_hertz(self) -> float | None:
        return self.clock_hertz

    def available_bytes(self) -> float | None:
        return 2.0**30


def ratio(samples: list[Sample]) -> float | None:
    return next((sample.value for sample in samples if sample.quantity == "other_cpu_ratio"), None)


def test_a_sample_holds_every_quantity_of_the_host() -> None:
    host = ReplayedHost((0, 0, 0), (20, 10, 10))
    sampler = HostSampler(host, clock=lambda: host.now)
    host.now += 10
    assert sampler.sample() == [
        Sample(110.0, "host", "load_average", 1.5),
        Sample(110.0, "host", "other_cpu_ratio", 0.0),
        Sample(110.0, "host", "cpu_clock_hertz", 3e9),
        Sample(110.0, "host", "available_bytes", 2.0**30),
    ]


def test_the_share_of_others_is_that_since_the_last_call() -> None:
    # Two cores. First 10 s: 20 s of CPU, 14 busy, 10 of them ours: (14-10)/20 = 0.2.
    # Next 5 s: 10 s of CPU, 6 busy, 1 ours: (6-1)/10 = 0.5.
    host = ReplayedHost((100, 50, 7), (120, 64, 17), (130, 70, 18))
    sampler = HostSampler(host, clock=lambda: host.now)
    host.now += 10
    assert ratio(sampler.sample()) == pytest.approx(0.2)
    host.now += 5
    assert ratio(sampler.sample()) == pytest.approx(0.5)


def test_the_share_stays_between_nothing_and_all() -> None:
    # 10 busy seconds, yet 10.1 ours, as the counts were not taken at the same instant.
    host = ReplayedHost((0, 0, 0), (20, 10, 10.1))
    sampler = HostSampler(host, clock=lambda: host.now)
    host.now += 10
    assert ratio(sampler.sample()) == 0.0


def test_a_short_interval_is_left_to_the_next_call() -> None:
    # 0.01 s say nothing; the next call looks back to the start: (14-10)/20.
    host = ReplayedHost((0, 0, 0), (20, 14, 10))
    sampler = HostSampler(host, clock=lambda: host.now)
    host.now += 0.01
    assert ratio(sampler.sample()) is None
    host.now += 10
    assert ratio(sampler.sample()) == pytest.approx(0.2)


def test_what_is_not_known_is_left_out() -> None:
    host = ReplayedHost((0, 0, 0), (20, 10, 10))
    host.clock_hertz = None
    sampler = HostSampler(host, clock=lambda: host.now)
    host.now += 10
    assert "cpu_clock_hertz" not in {sample.quantity for sample in sampler.sample()}


def test_this_machine_can_be_sampled() -> None:
    samples = HostSampler().sample()
    assert {sample.quantity for sample in samples} <= set(QUANTITIES)
    assert next(sample.value for sample in samples if sample.quantity == "available_bytes") > 2**20


def test_the_work_of_children_is_our_own() -> None:
    host = PsutilHost()
    before = host.cpu_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    after = host.cpu_seconds()
    # The child has ended; at least its loop (tenths of a second) is in the sum.
    assert after[2] - before[2] > 0.05
    assert after[0] > before[0]
