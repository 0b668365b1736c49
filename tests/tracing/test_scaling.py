"""A GradScaler's search for its scale is no fault; a search that does not end is."""

import torch
from torch import nn

import anomprof


def train(loss_of, steps, scale):
    torch.manual_seed(0)
    net = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    with anomprof.trace(announce=False) as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                out = net(torch.randn(8, 6))
            scaler.scale(loss_of(out.float(), net)).backward()
            scaler.step(optimizer)
            scaler.update()
    return trace


def test_skipped_updates_of_a_search_are_notes():
    trace = train(lambda out, net: out.square().sum(), steps=12, scale=2.0**18)
    assert trace.findings == ()
    assert any("GradScaler skipped the update" in note.what for note in trace.notes)
    assert trace.result().steps == 12  # skipped ones are the user's steps, too


def test_skipping_that_no_scale_can_end_is_a_finding_at_its_first_step():
    trace = train(
        lambda out, net: (net.bias - net.bias).square().sum().sqrt() + out.sum(), steps=7, scale=4.0
    )
    finding = trace.findings[0]
    assert (finding.phase, finding.node, finding.step) == ("backward", "SqrtBackward0", 0)


def test_a_bad_loss_is_a_finding_at_once():
    trace = train(lambda out, net: out.mean() * torch.tensor(0.0).log(), steps=1, scale=4.0)
    assert trace.findings[0].symptom == "loss"
