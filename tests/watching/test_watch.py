"""A watched script as its user meets it, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

FAILS_IN_BACKWARD = """
import torch
from torch import nn


class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient today")


class Net(nn.Module):
    def forward(self, x):
        return Refusing.apply(x)


def train():
    try:
        Net()(torch.ones(2, requires_grad=True)).sum().backward()
    except ValueError as error:
        raise RuntimeError("training failed") from error


train()
"""

IN_BOTH = """
import pickle
import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.below = Deep(levels - 1) if levels else nn.Linear(2, 2)

    def forward(self, x):
        return self.below(x)


class Counting(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def deepest():
    levels = 10
    while True:
        try:
            Deep(levels)(torch.zeros(1, 2))
        except RecursionError:
            return levels
        levels += 10


Deep(1)(torch.ones(3, 2).as_subclass(Counting)).sum().backward()
print(Counting.calls, deepest(), pickle.loads(pickle.dumps(torch.from_numpy)) is torch.from_numpy)
"""


FROM_NUMPY = """
import numpy
import torch

table = torch.from_numpy(numpy.array([1.0, numpy.nan]))
(table * torch.ones(2, requires_grad=True)).sum().backward()
"""


def python(folder: Path, source: str, *words: str, path: str = "") -> subprocess.CompletedProcess:
    (folder / "train.py").write_text(source)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if path:
        environment["PYTHONPATH"] = os.pathsep.join([path, environment.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words, "train.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


WATCH = ("-m", "anomprof", "run", "--out", "out", "--force")


def test_a_traceback_shows_none_of_our_frames(tmp_path: Path) -> None:
    plain, watched = python(tmp_path, FAILS_IN_BACKWARD), python(tmp_path, FAILS_IN_BACKWARD, *WATCH)
    assert plain.returncode == watched.returncode == 1
    assert "no gradient today" in plain.stderr
    assert plain.stderr in watched.stderr


def test_depth_of_calls_and_calls_of_subclasses_are_those_of_plain_python(tmp_path: Path) -> None:
    plain, watched = python(tmp_path, IN_BOTH), python(tmp_path, IN_BOTH, *WATCH)
    assert watched.stdout == plain.stdout, watched.stderr
    assert plain.stdout.endswith("True\n")


def test_a_script_that_never_imports_torch_is_told_so_and_leaves_findings(tmp_path: Path) -> None:
    done = python(tmp_path, "print('done')", *WATCH)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "ended before it imported torch" in done.stderr
    assert json.loads((tmp_path / "out" / "findings.json").read_text())["verdict"] == "clean"


def test_the_line_is_the_scripts_also_where_torch_was_there_before_it(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text("import torch")
    done = python(tmp_path, FROM_NUMPY, *WATCH, path=str(tmp_path / "start"))
    assert done.returncode == 0, done.stderr
    [finding] = json.loads((tmp_path / "out" / "findings.json").read_text())["findings"]
    assert (finding["file"], finding["code"].partition(" ")[0]) == ("train.py", "table")
