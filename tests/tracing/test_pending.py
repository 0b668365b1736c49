"""Numbers that stay on the device until one read: tried on a processor that is treated as an accelerator."""

import gc
import weakref

import pytest
import torch
from torch import nn

import anomprof
import anomprof.tracing.tracer
from anomprof.replay import digest, state_tensors
from anomprof.tracing.pending import Pending, Reading


@pytest.fixture
def fetches(monkeypatch):
    """How many readings each fetch from the device has brought."""
    counts = []
    fetch = Pending._fetch

    def counted(self):
        counts.append(len(self._readings))
        return fetch(self)

    monkeypatch.setattr(anomprof.tracing.tracer, "is_accelerator", lambda tensor: True)
    monkeypatch.setattr(Pending, "_fetch", counted)
    return counts


def train(net, steps, look=lambda out: None, scale=1.0):
    torch.manual_seed(3)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(steps):
        out = net(torch.randn(6, 4))
        look(out)
        loss = (out * (scale if step == 2 else 1.0)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def layers():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))


def test_there_is_one_read_per_step(fetches):
    with anomprof.trace() as trace:
        train(layers(), 5)
    assert trace.findings == ()
    # The first comes before the model is looked at for the first time, the last at the end.
    assert len(fetches) == 5 + 1
    assert min(fetches[1:5]) > 20


def test_training_is_bitwise_the_same(fetches):
    plain, watched = layers(), layers()
    train(plain, 4)
    with anomprof.trace():
        train(watched, 4)
    assert fetches
    assert digest(state_tensors(watched)) == digest(state_tensors(plain))


def test_a_fault_is_named_with_its_step_though_it_is_read_later(fetches):
    with anomprof.trace(announce=False) as trace:
        train(layers(), 5, scale=1e30)
    finding = trace.findings[0]
    assert (finding.kind, finding.phase, finding.step, finding.op) == ("inf", "forward", 2, "aten::pow")
    assert finding.code == "loss = (out * (scale if step == 2 else 1.0)).square().mean()"
    assert 1e28 < max(abs(finding.inputs[0].min), abs(finding.inputs[0].max)) < 1e32
    assert finding.outputs[0].max == float("inf")


def test_a_fault_of_the_update_is_read_in_the_next_step_and_still_told_of_its_own(fetches):
    net = layers()

    def spoil(out):
        if len(seen) == 2:
            with torch.no_grad():
                net[0].weight.div_(0.0)
        seen.append(1)

    seen = []
    with anomprof.trace(announce=False) as trace:
        train(net, 5, look=spoil)
    assert [finding.step for finding in trace.findings][:1] == [2]
    assert trace.findings[0].code == "net[0].weight.div_(0.0)"


def test_no_tensor_is_kept_alive(fetches):
    kept = []
    with anomprof.trace():
        train(layers(), 2, look=lambda out: kept.append(weakref.ref(out)))
        x = torch.randn(3)
        gone = weakref.ref(x * 2)
        gc.collect()
        assert gone() is None
    gc.collect()
    assert [reference() for reference in kept] == [None, None]


def test_a_reading_tells_nan_and_each_infinity_apart():
    def held(low, high):
        reading = Reading()
        reading.low, reading.high = low, high
        found = reading.contents((3,), "float32", 3)
        return reading.is_bad, found.nan, found.plus_inf, found.minus_inf

    inf, nan = float("inf"), float("nan")
    assert held(-1.0, 2.0) == (False, 0, 0, 0)
    assert held(-inf, 2.0) == (True, 0, 0, 1)
    assert held(-inf, inf) == (True, 0, 1, 1)
    assert held(nan, nan) == (True, 1, 0, 0)
