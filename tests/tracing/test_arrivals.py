"""Data that is bad before torch sees it is named where it comes in."""

import array
import math

import numpy as np
import pytest
import torch
from torch import nn

import anomprof

MADE_OUTSIDE = {
    "from_numpy": lambda numbers: torch.from_numpy(np.array(numbers, dtype=np.float32)),
    "as_tensor of an array": lambda numbers: torch.as_tensor(np.array(numbers, dtype=np.float32)),
    "as_tensor of a list": torch.as_tensor,
    "tensor": torch.tensor,
    "FloatTensor": torch.FloatTensor,
    "asarray": lambda numbers: torch.asarray(np.array(numbers, dtype=np.float32)),
    "frombuffer": lambda numbers: torch.frombuffer(array.array("f", numbers), dtype=torch.float32),
    "from_dlpack": lambda numbers: torch.from_dlpack(np.array(numbers, dtype=np.float32)),
}


@pytest.mark.parametrize("name", MADE_OUTSIDE)
def test_a_nan_from_numpy_or_a_list_is_named_at_the_line_that_made_the_tensor(name):
    make = MADE_OUTSIDE[name]
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with anomprof.trace(announce=False) as trace:
        for step in range(3):
            weights = make([0.5, 1.0, math.nan if step == 1 else 2.0])
            loss = (net(torch.randn(3, 4)).squeeze(1) * weights).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    finding = trace.findings[0]
    assert (finding.kind, finding.phase, finding.step) == ("nan", "input", 1)
    in_table = finding.function == "<lambda>"  # this file's own line that calls torch
    assert "numbers" in finding.code if in_table else finding.code.startswith("weights = make(")
    assert finding.message == "Bad: row 2 of 3 (counted from 0)."
    assert "numpy or plain Python made it" in finding.advice.cause


class Standardised(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randn(12, 5)
        self.rows[7] = 3.0  # a constant row has no deviation

    def __len__(self):
        return 12

    def __getitem__(self, index):
        row = self.rows[index]
        return (row - row.mean()) / row.std()


def test_a_bad_sample_of_a_loader_in_this_process_is_named_by_line_and_sample():
    net = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with anomprof.trace(announce=False) as trace:
        for batch in torch.utils.data.DataLoader(Standardised(), batch_size=4):
            loss = net(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    finding = trace.findings[0]
    assert (finding.phase, finding.step, finding.code) == (
        "input",
        1,
        "return (row - row.mean()) / row.std()",
    )
    assert finding.message == "Bad: sample 3 of 4 (counted from 0)."


def test_an_average_of_weights_that_is_bad_is_told_once_also_when_it_is_used():
    net = nn.Linear(3, 1)
    average = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with anomprof.trace(announce=False) as trace:
        for _ in range(2):
            loss = net(torch.randn(4, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for mine, own in zip(average.parameters(), net.parameters(), strict=True):
                    mine.copy_(own * 0.0 / torch.zeros(()))
        average(torch.randn(2, 3))
    assert [(finding.phase, finding.op) for finding in trace.findings] == [("optimizer", "aten::div")]
    assert "divides by something that is 0" in trace.findings[0].advice.cause
