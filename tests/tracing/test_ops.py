import pytest
import torch

from anomprof.tracing.ops import kind_of

aten = torch.ops.aten


def test_the_schema_says_what_an_op_writes():
    tensor, other = torch.ones(2), torch.ones(2)
    assert kind_of(aten.add_.Tensor).written((tensor, other), {})[0] is tensor
    assert kind_of(aten.add.out).written((other, other), {"out": tensor})[0] is tensor
    listed = kind_of(aten._foreach_add_.List).written(([tensor, other], [other, other]), {})
    assert [t is tensor or t is other for t in listed] == [True, True]
    assert kind_of(aten.add.Tensor).written((tensor, other), {}) == []


def test_batch_norm_writes_its_statistics_only_in_training():
    kind = kind_of(aten.native_batch_norm.default)
    mean, var = torch.zeros(2), torch.ones(2)
    call = (torch.ones(3, 2), None, None, mean, var, True, 0.1, 1e-5)
    assert [t is mean or t is var for t in kind.written(call, {})] == [True, True]
    assert kind.written((*call[:5], False, 0.1, 1e-5), {}) == []


@pytest.mark.parametrize("op", [aten.relu.default, aten.cat.default, aten.tanh.default, aten.zeros.default])
def test_ops_that_cannot_create_a_bad_value_are_not_looked_at(op):
    assert not kind_of(op).creates


@pytest.mark.parametrize("op", [aten.div.Tensor, aten.exp.default, aten.mm.default, aten.sum.default])
def test_ops_that_can_are(op):
    assert kind_of(op).creates


def test_carriers_really_carry():
    """What the table promises, checked on extreme finite operands."""
    extremes = torch.tensor([3.4e38, -3.4e38, 1e-45, -1e-45, 0.0, -0.0, 1.0, 88.9, -104.0])
    for name in "relu sigmoid tanh sin cos atan erf neg abs round floor silu softplus leaky_relu".split():
        op = getattr(torch.nn.functional, name, None) or getattr(torch, name)
        assert not kind_of(getattr(aten, name).default).creates, name
        assert bool(torch.isfinite(op(extremes)).all()), name
    assert bool(torch.isfinite(extremes.softmax(0)).all())


def test_views_and_uninitialised_memory_are_known():
    assert kind_of(aten.view.default).is_view
    assert kind_of(aten.detach.default).is_view
    assert kind_of(aten.empty.memory_format).is_uninitialised
    assert kind_of(aten.copy_.default).overwrites
    assert not kind_of(aten.add_.Tensor).overwrites


def test_of_an_op_with_workings_only_the_answer_counts():
    assert kind_of(torch.ops.aten._ctc_loss.default).answers == 1
    assert kind_of(torch.ops.aten.var_mean.correction).answers is None
