"""What is kept of a run: each thing once, and what harmed nothing as a note."""

import torch
from torch import nn

import anomprof


def squared_error(out, target):
    return (out - target).square().mean()


def regress(batches, target_of, *, loss_of=squared_error, net=None):
    torch.manual_seed(2)
    net = nn.Linear(3, 1) if net is None else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in batches:
        loss = loss_of(net(x), target_of(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def batches(count=4):
    torch.manual_seed(5)
    return [torch.randn(8, 3) for _ in range(count)]


def masked_logarithm(x):
    first = x[:, :1]
    logarithm = torch.log(first)  # NaN where first is negative
    return torch.where(first > 0, logarithm, torch.zeros_like(first))


def test_a_value_that_is_swallowed_without_consequence_is_a_note_with_its_line():
    with anomprof.trace() as trace:
        regress(batches(), masked_logarithm)
    assert trace.findings == ()
    (note,) = trace.notes
    assert "NaN at" in note.what
    assert "test_ledger.py" in note.what
    assert "aten::log" in note.what
    assert "harmed nothing" in note.what
    assert (note.step, note.times) == (0, 4)


def test_a_metric_that_is_nan_is_a_note_and_named_where_it_was_made():
    def loss_of(out, target):
        with torch.no_grad():
            out.mean() / 0.0
        return (out - target).square().mean()

    with anomprof.trace() as trace:
        regress(batches(2), lambda x: x[:, :1], loss_of=loss_of)
    assert trace.findings == ()
    assert [note.times for note in trace.notes] == [2]
    assert "Inf at" in trace.notes[0].what


def test_a_bad_number_that_the_script_reads_is_said_to_have_been_read():
    best = []

    def loss_of(out, target):
        score = (out.detach() * 0.0).mean() / 0.0
        if score.item() > 0:  # never true, since it is NaN
            best.append(score)
        return out.square().mean()

    with anomprof.trace() as trace:
        regress(batches(2), lambda x: x, loss_of=loss_of)
    assert not best
    assert [
        "read it as a number (no comparison with NaN is ever true)" in note.what for note in trace.notes
    ] == [True]


def test_a_line_that_did_harm_in_one_step_is_a_finding_and_no_note():
    def loss_of(out, target):
        logarithm = torch.log(target)  # of -1 in step 0, where it is dropped, and in step 1, where it is used
        return out.square().mean() + (logarithm.mean() if len(seen) == 2 else 0)

    seen = []

    def target_of(x):
        seen.append(x)
        return -torch.ones(2)

    with anomprof.trace(announce=False) as trace:
        regress(batches(2), target_of, loss_of=loss_of)
    assert [finding.step for finding in trace.findings] == [1]
    assert trace.notes == ()


def test_what_the_code_wrote_on_purpose_is_not_worth_a_note():
    def loss_of(out, target):
        scores = torch.cat([out, target], 1).masked_fill(target > 0, float("-inf"))
        best = torch.full((), float("inf"))
        torch.minimum(best, scores[0, 0].detach())
        return torch.softmax(torch.cat([scores, out], 1), dim=1).square().mean()

    with anomprof.trace() as trace:
        regress(batches(2), lambda x: x[:, :1], loss_of=loss_of)
    assert trace.findings == ()
    assert trace.notes == ()


class Cleaning(nn.Linear):
    def forward(self, x):
        return super().forward(torch.nan_to_num(x))


def test_a_bad_sample_that_the_model_replaces_is_a_note():
    data = batches(3)
    data[1][2] = float("nan")
    with anomprof.trace() as trace:
        regress(data, lambda x: torch.ones(8, 1), net=Cleaning(3, 1))
    assert trace.findings == ()
    assert [note.step for note in trace.notes] == [1]
    assert "input" in trace.notes[0].what


def test_only_so_many_notes_are_kept():
    lines = "\n".join(f"torch.log(x - {100 + number})" for number in range(40))
    code = compile(lines, __file__, "exec")

    def loss_of(out, target):
        exec(code, {"torch": torch, "x": target})
        return out.square().mean()

    with anomprof.trace() as trace:
        regress(batches(2), lambda x: x, loss_of=loss_of)
    assert trace.findings == ()
    assert len(trace.notes) == 21
    assert "only the first ones" in trace.notes[-1].what
