"""The trace as a user of the API meets it: planted faults, healthy controls, nothing disturbed."""

import copy
import threading

import pytest
import torch
from torch import nn

import anomprof
from anomprof.errors import UserError
from anomprof.replay import digest, state_tensors
from anomprof.report import run_folder


class Ratio(nn.Module):
    def forward(self, x, count):
        return x / count


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)
        self.ratio = Ratio()

    def forward(self, x, count):
        return self.ratio(self.lin(x), count)


def train(net, counts, steps=3):
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        loss = net(torch.randn(5, 4), counts[step]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def counts(*numbers):
    return [torch.tensor(float(number)) for number in numbers]


def test_a_healthy_run_has_no_findings():
    with anomprof.trace() as trace:
        train(Net(), counts(1, 2, 3))
    assert trace.findings == ()
    assert trace.result().verdict == "clean"
    assert trace.result().steps == 3
    assert trace.places_noted > 0


def test_a_trace_is_saved_as_a_run_is_also_while_it_goes_on(tmp_path):
    with anomprof.trace(announce=False) as trace:
        train(Net(), counts(1, 2, 3))
        assert "3 steps" in trace.save(tmp_path / "some" / "run").read_text()
        train(Net(), counts(0, 1, 2))
    page = trace.save(str(tmp_path / "some" / "run"))
    assert page == tmp_path / "some" / "run" / "report.html"
    assert "return x / count" in page.read_text()
    assert torch.__version__ in page.with_suffix(".md").read_text()
    assert run_folder.load(page.parent) == trace.result()


def test_saving_spares_the_record_of_a_run(tmp_path):
    (tmp_path / "record.sqlite").write_text("precious")
    with anomprof.trace() as trace:
        pass
    with pytest.raises(UserError, match="already holds a run"):
        trace.save(tmp_path)
    (tmp_path / "a-file").touch()
    with pytest.raises(UserError, match="cannot make"):
        trace.save(tmp_path / "a-file" / "folder")
    assert not list(tmp_path.glob("report*"))


def test_a_division_by_zero_is_named_with_step_module_and_line():
    with anomprof.trace(announce=False) as trace:
        train(Net(), counts(1, 0, 3))
    finding = trace.findings[0]
    assert (finding.kind, finding.phase, finding.step) == ("inf", "forward", 1)
    assert (finding.op, finding.module, finding.code) == ("aten::div", "ratio", "return x / count")
    assert finding.symptom == "loss"
    assert finding.confidence == "exact"
    # The loop's own line is among the callers, so that a reader can walk up.
    assert any("net(torch.randn(5, 4), counts[step])" in frame.code for frame in finding.callers)
    # x has 15 finite elements, count is one zero: all 15 quotients are infinite.
    assert [(summary.min, summary.max) for summary in finding.inputs][1] == (0.0, 0.0)
    assert (finding.outputs[0].inf, finding.outputs[0].nan) == (15, 0)
    assert finding.chain[0].op == "aten::div"


def test_training_is_bitwise_the_same_with_and_without_the_trace():
    plain, watched = Net(), Net()
    watched.load_state_dict(plain.state_dict())
    plain_losses = train(plain, counts(1, 2, 3))
    random = torch.rand(3)
    with anomprof.trace():
        watched_losses = train(watched, counts(1, 2, 3))
    assert watched_losses == plain_losses
    assert torch.equal(torch.rand(3), random)
    assert digest(state_tensors(watched)) == digest(state_tensors(plain))


def test_everything_is_as_it_was_after_the_trace():
    def wrapped():
        scaler, optimizer = torch.amp.GradScaler, torch.optim.Optimizer
        engine = torch.autograd._engine_run_backward
        own = (nn.Module.__call__, nn.Module.zero_grad, optimizer.zero_grad, scaler.step, scaler.scale)
        return (*own, engine, torch.from_numpy, torch.compile, threading.Thread._bootstrap_inner)

    before = wrapped()
    with anomprof.trace():
        assert not any(now is then for now, then in zip(wrapped(), before, strict=True))
    assert wrapped() == before
    assert torch._C._len_torch_dispatch_stack() == 0


def test_only_one_trace_at_a_time():
    with anomprof.trace(), pytest.raises(RuntimeError, match="already on"), anomprof.trace():
        pass
    with anomprof.trace():  # the failed attempt has left nothing behind
        pass


def test_a_backward_fault_is_named_at_its_forward_line():
    weight = nn.Parameter(torch.tensor([0.0, 4.0]))
    with anomprof.trace(announce=False) as trace:
        root = weight.square().sqrt()
        root.sum().backward()
    finding = trace.findings[0]
    assert (finding.phase, finding.node, finding.op) == ("backward", "SqrtBackward0", "aten::sqrt")
    assert finding.backward_op == "aten::div"
    assert finding.code == "root = weight.square().sqrt()"


def test_the_line_of_a_node_is_not_stolen_by_an_op_without_gradient():
    """An op without gradient just before one with: the count of nodes does not tell them apart."""
    weight = nn.Parameter(torch.zeros(3))
    plain = torch.ones(3)
    with anomprof.trace(announce=False) as trace:
        doubled = plain * 2
        root = weight.abs().sqrt()
        (root * doubled.exp()).sum().backward()
    assert trace.findings[0].code == "root = weight.abs().sqrt()"


def test_a_nan_that_backward_drops_is_no_finding():
    weight = nn.Parameter(torch.tensor([-1.0, 4.0]))
    with anomprof.trace() as trace:
        root = weight.sqrt()
        root.nan_to_num().detach()
        torch.relu(weight).sum().backward()
    assert trace.findings == ()


def test_a_saved_inf_that_comes_back_as_nan_is_named_in_forward():
    weight = nn.Parameter(torch.tensor([0.0, 4.0]))
    with anomprof.trace(announce=False) as trace:
        inverse = weight.rsqrt()
        inverse.clamp(max=10.0).sum().backward()
    finding = trace.findings[0]
    assert (finding.kind, finding.phase, finding.code) == ("inf", "forward", "inverse = weight.rsqrt()")


def test_a_mask_of_minus_infinity_is_not_blamed_for_the_softmax_that_sees_nothing_else():
    scores = nn.Parameter(torch.zeros(2, 3))
    mask = torch.tensor([[False, True, False], [True, True, True]])
    with anomprof.trace(announce=False) as trace:
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        weights.sum().backward()
    finding = trace.findings[0]
    assert (finding.kind, finding.op) == ("nan", "aten::_softmax")


def test_an_infinite_norm_that_zeroes_the_update_is_a_finding():
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with anomprof.trace(announce=False) as trace:
        (weight * 1e30).sum().backward()
        nn.utils.clip_grad_norm_([weight], 1.0)
        optimizer.step()
    finding = trace.findings[0]
    assert (finding.kind, finding.phase) == ("inf", "optimizer")
    assert "clip_grad_norm_" in finding.code
    assert bool((weight == 1).all())  # training has silently stood still


def test_an_error_of_autograd_names_the_line_that_made_the_change():
    weight = nn.Parameter(torch.ones(3))
    trace = anomprof.trace(announce=False)

    def overwrite():
        out = torch.sigmoid(weight)
        out += 1
        out.sum().backward()

    with pytest.raises(RuntimeError, match="inplace operation"), trace:
        overwrite()
    finding = trace.findings[0]
    assert (finding.kind, finding.code) == ("error", "out += 1")
    assert finding.chain[-1].code == "out = torch.sigmoid(weight)"
    assert trace.result().verdict == "error"


def test_a_write_into_a_slice_of_what_autograd_needs_is_named_though_shapes_differ():
    weight = nn.Parameter(torch.ones(3, 4))
    trace = anomprof.trace(announce=False)

    def prune():
        out = torch.softmax(weight, dim=1)
        out[:, 2] = 0.0
        (out * 2).sum().backward()

    with pytest.raises(RuntimeError, match="inplace operation"), trace:
        prune()
    finding = trace.findings[0]
    assert (finding.kind, finding.phase, finding.code) == ("error", "forward", "out[:, 2] = 0.0")
    assert "masked_fill" in finding.advice.remedies[0]


def test_a_forbidden_change_of_a_leaf_is_found_when_it_ends_the_block():
    weight = torch.ones(3, requires_grad=True)
    trace = anomprof.trace(announce=False)
    with pytest.raises(RuntimeError, match="leaf Variable"), trace:
        weight *= 2
    assert (trace.findings[0].kind, trace.findings[0].op) == ("error", "aten::mul_")


def test_the_same_origin_in_many_steps_is_one_finding():
    head = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.0)
    with anomprof.trace(announce=False) as trace:
        for _ in range(4):
            loss = head(torch.ones(1, 2)).sum() + torch.zeros(1).log().sum()
            if not loss.isfinite():
                loss.backward()
            optimizer.step()
    assert len(trace.findings) == 1
    assert trace.findings[0].occurrences == 4
    assert (trace.findings[0].step, trace.findings[0].last_step) == (0, 3)


def test_two_independent_origins_are_listed_in_order():
    a, b = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    with anomprof.trace(announce=False) as trace:
        first = 1 / a
        second = (b - 1).log()
        torch.stack([first, second]).sum().backward()
    assert [finding.code for finding in trace.findings][:2] in (
        ["second = (b - 1).log()"],
        ["first = 1 / a", "second = (b - 1).log()"],
        ["second = (b - 1).log()", "first = 1 / a"],
    )


def test_the_trace_rests_once_the_model_is_lost_and_wakes_when_it_is_restored():
    net = Net()
    good = copy.deepcopy(net.state_dict())
    with anomprof.trace(announce=False) as trace:
        train(net, counts(0, 1, 1))
        assert trace._attachment.tracer.rests
        net.load_state_dict(good)
        train(net, counts(1, 1, 1))
        assert not trace._attachment.tracer.rests
    assert len(trace.findings) == 1


def test_an_uninitialised_tensor_is_blamed_only_where_it_is_read():
    torch.use_deterministic_algorithms(True)  # fills it with NaN
    try:
        weight = nn.Parameter(torch.ones(3))
        with anomprof.trace() as trace:
            scratch = torch.empty(3)
            scratch.copy_(weight.detach())
            (weight * scratch).sum().backward()
        assert trace.findings == ()
        with anomprof.trace(announce=False) as trace:
            scratch = torch.empty(3)
            (weight * scratch).sum().backward()
        assert (trace.findings[0].phase, trace.findings[0].op) == ("input", "aten::empty")
    finally:
        torch.use_deterministic_algorithms(False)


def test_memory_does_not_grow_with_the_steps():
    import psutil

    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batch = torch.randn(4, 8)
    mask = torch.full((8,), float("-inf"))

    def take(steps):
        for _ in range(steps):
            loss = (net(batch) + torch.where(batch.sum() > 1e9, mask, 0.0)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    with anomprof.trace() as trace:
        take(500)
        before = psutil.Process().memory_info().rss
        take(1500)
        grown = psutil.Process().memory_info().rss - before
    assert trace.findings == ()
    # 1,500 steps of 12 noted ops are 18,000 places of about 300 bytes in the ring; leaked tensors are more.
    assert grown < 20e6


@pytest.mark.parametrize(
    ("compute", "shown"),
    [
        (lambda x: x * 0 / 0, [("float32", 0.0, 0), ("number", 0.0, 0)]),
        (
            lambda x: x.detach().abs().neg().requires_grad_() ** 0.5,
            [("float32", None, 0), ("number", 0.5, 0)],
        ),
        (lambda x: torch.add(x, x, alpha=float("nan")), [("float32", None, 0)] * 2 + [("number", None, 1)]),
    ],
)
def test_plain_numbers_that_explain_are_among_the_inputs(compute, shown):
    torch.manual_seed(0)
    with anomprof.trace(announce=False) as trace:
        compute(torch.randn(4, requires_grad=True)).sum().backward()
    inputs = trace.findings[0].inputs
    assert [(held.dtype, held.nan) for held in inputs] == [(dtype, nan) for dtype, _, nan in shown]
    assert all(held.min == low for held, (_, low, _) in zip(inputs, shown, strict=True) if low is not None)
