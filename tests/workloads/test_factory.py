from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from anomprof.workload import Workload
from anomprof.workloads import WorkloadOptions, build, example

Options = Callable[..., WorkloadOptions]

HEAD = """
import torch
from torch import nn
from anomprof import Workload

def workload(**parts):
    model = nn.Linear(2, 1)
    usual = dict(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
                 batches=[torch.ones(4, 2)], loss=lambda model, batch: model(batch).sum())
    return Workload(**(usual | parts))
"""


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(code: str, head: str = HEAD) -> Path:
        path = tmp_path / "own_model.py"
        path.write_text(head + code)
        return path

    return write


Written = Callable[..., Path]


def test_the_example_file_builds_and_takes_a_step(options: Options) -> None:
    workload = build(f"{example.__file__}:make", options(batch_size=3, seed=1))
    batch = next(iter(workload.batches))
    loss = workload.loss(workload.model, batch)
    loss.backward()
    workload.optimizer.step()
    assert loss.isfinite()
    assert workload.name == "example"
    assert workload.samples_per_batch == len(batch[0]) == 3
    assert workload.facts["data"] == "random numbers"
    assert workload.facts["optimizer"] == "AdamW, learning rate 0.001"
    # 33*64 + 65*64 + 65
    assert workload.facts["parameters"] == "6,337"


def test_a_factory_gets_the_arguments_that_it_names_and_its_own_defaults(
    written: Written, options: Options
) -> None:
    path = written("""
def make(batch_size=7, device=None, dtype=None, seed=None, image_size=5, optimizer="none", data="nothing"):
    seen = dict(locals())
    result = workload()
    result.facts["seen"] = repr(seen)
    return result
""")
    workload = build(f"{path}:make", options(image_size=9, seed=3, data=Path("d")))
    assert workload.facts["seen"] == repr(
        {
            "batch_size": 7,
            "device": torch.device("cpu"),
            "dtype": torch.float32,
            "seed": 3,
            "image_size": 9,
            "optimizer": "none",
            "data": Path("d"),
        }
    )


def test_a_factory_with_keyword_arguments_gets_all_that_was_chosen(
    written: Written, options: Options
) -> None:
    path = written("def make(**choices): return workload(facts={'seen': ' '.join(sorted(choices))})")
    workload = build(f"{path}:make", options(batch_size=2, sequence_length=4))
    assert workload.facts["seen"] == "batch_size device dtype seed sequence_length"


def test_a_factory_without_a_name_and_facts_gets_them(written: Written, options: Options) -> None:
    path = written("def make(): return workload()")
    workload = build(f"{path}:make", options())
    assert workload.name == "own_model.py:make"
    assert workload.facts == {
        "optimizer": "SGD, learning rate 0.1",
        "parameters": "3",
        "data": "as built by own_model.py:make",
    }


def test_a_factory_without_a_seed_starts_from_the_same_weights(written: Written, options: Options) -> None:
    path = written("def make(): return workload()")
    one, two = (build(f"{path}:make", options(seed=4)).model.weight for _ in range(2))
    assert torch.equal(one, two)


def test_a_file_may_import_its_neighbours_and_be_called_like_a_known_module(
    tmp_path: Path, options: Options
) -> None:
    json = sys.modules["json"]
    (tmp_path / "neighbour_of_mine.py").write_text(HEAD)
    (tmp_path / "json.py").write_text("from neighbour_of_mine import workload\ndef make(): return workload()")
    assert build(f"{tmp_path}/json.py:make", options()).parameter_count == 3
    assert sys.modules["json"] is json


def test_a_generator_of_batches_is_read_once_and_kept(written: Written, options: Options) -> None:
    path = written("""
def endless():
    while True:
        yield torch.rand(2, 2)

def make(): return workload(batches=endless())
""")
    workload = build(f"{path}:make", options())
    assert isinstance(workload.batches, list)
    assert len(workload.batches) == 64
    assert workload.facts["batches"] == "the first 64 of a generator, kept in memory"


def test_a_model_on_another_device_than_asked_is_mentioned(written: Written) -> None:
    path = written("def make(): return workload()")
    workload = build(f"{path}:make", WorkloadOptions(torch.device("cuda")))
    assert workload.facts["device"] == "cpu, chosen by own_model.py:make"


def test_a_model_in_evaluation_mode_is_mentioned(written: Written, options: Options) -> None:
    path = written("""
def make():
    result = workload()
    result.model.eval()
    return result
""")
    assert (
        build(f"{path}:make", options()).facts["model"] == "in evaluation mode, as own_model.py:make left it"
    )


@pytest.mark.parametrize(
    ("code", "choices", "expected"),
    [
        (
            "def make(): return workload()",
            {"batch_size": 4},
            "--batch-size was given, but own_model.py:make takes no argument 'batch_size'; "
            "add it to the function or leave the option out",
        ),
        (
            "def make(): return workload()",
            {"dtype": torch.bfloat16},
            "--dtype was given, but own_model.py:make takes no argument 'dtype'; "
            "add it to the function or leave the option out",
        ),
        (
            "def make(batch_size): return workload()",
            {},
            "own_model.py:make requires an argument 'batch_size'; "
            "give --batch-size or give the argument a default value",
        ),
        (
            "def make(depth): return workload()",
            {},
            "own_model.py:make requires an argument 'depth', which anomprof does not know; "
            "give it a default value",
        ),
        (
            "def mike(): pass\nclass Other: pass",
            {},
            "own_model.py has no workload factory 'make' (did you mean 'mike'?); "
            "there are workload, mike, Other",
        ),
        (
            "make = 3",
            {},
            "own_model.py:make is of type int and not a function; "
            "name a function that returns an anomprof.Workload",
        ),
        ("def make(): pass", {}, "own_model.py:make returned None; return an anomprof.Workload"),
        (
            "def make(): return nn.Linear(1, 1), 3",
            {},
            "own_model.py:make returned a tuple (Linear, int); return an anomprof.Workload",
        ),
        (
            "def make(): return Workload",
            {},
            "own_model.py:make returned the class Workload itself; return an anomprof.Workload",
        ),
        (
            "def make(): return workload(model=3)",
            {},
            "the model of the workload that own_model.py:make returned is a value of type int; "
            "give a torch.nn.Module",
        ),
        (
            "def make(): return workload(optimizer=torch.optim.SGD)",
            {},
            "the optimizer of the workload that own_model.py:make returned is the class SGD itself; "
            "give a torch.optim.Optimizer",
        ),
        (
            "def make(): return workload(loss=None)",
            {},
            "the loss of the workload that own_model.py:make returned is None; "
            "give a function of model and batch",
        ),
        (
            "def make(): return workload(batches=5)",
            {},
            "the batches of the workload that own_model.py:make returned is a value of type int; "
            "give a list or a DataLoader",
        ),
        (
            "def make(): return workload(samples_per_batch=0)",
            {},
            "the samples_per_batch of the workload that own_model.py:make returned is a value of type int; "
            "give a whole number of 1 or more, or None",
        ),
        (
            "def make(): return workload(batches=[])",
            {},
            "the batches of own_model.py:make are empty; give at least one batch",
        ),
        (
            "def make(): return workload(batches=iter(()))",
            {},
            "the batches of own_model.py:make are empty; give at least one batch",
        ),
        (
            "def make(): return workload(optimizer=torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1))",
            {},
            "the optimizer that own_model.py:make returned holds none of the model's trainable parameters; "
            "build it over model.parameters() after the model is on its device",
        ),
        (
            "def make(): return workload(model=nn.Sequential(nn.Linear(1, 1)), checkpoint_blocks=('1',),"
            " optimizer=torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1))",
            {},
            "the optimizer that own_model.py:make returned holds none of the model's trainable parameters; "
            "build it over model.parameters() after the model is on its device",
        ),
        (
            "def make(): return workload(checkpoint_blocks=('blocks.0',))",
            {},
            "checkpoint_blocks of the workload that own_model.py:make returned names 'blocks.0', "
            "which the model does not have; give names as in model.named_modules()",
        ),
        (
            "def make(): return workload(checkpoint_blocks='head')",
            {},
            "checkpoint_blocks of the workload that own_model.py:make returned is one string; "
            "give a tuple of module names",
        ),
    ],
)
def test_a_wrong_factory_ends_in_one_sentence(
    code: str,
    choices: dict[str, Any],
    expected: str,
    written: Written,
    options: Options,
    sentence: Callable[..., str],
) -> None:
    path = written(code)
    assert sentence(lambda: build(f"{path}:make", options(**choices))) == expected


# HEAD has 10 lines, so that the code's first line is number 11.
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "def inner(): return torch.ones(2) @ torch.ones(3)\ndef make():\n    return inner()",
            "own_model.py:make failed: RuntimeError: ",
        ),
        (
            "def make(): return {}['x']",
            "own_model.py:make failed: KeyError: 'x' (own_model.py:11); repair it there",
        ),
        ("def make(): raise SystemExit(2)", "own_model.py:make failed: SystemExit: 2 (own_model.py:11); "),
        ("import not_there_at_all", "importing own_model.py failed: ModuleNotFoundError: No module named"),
        ("\ndef make(:", "importing own_model.py failed: SyntaxError: "),
        ("raise SystemExit", "importing own_model.py failed: SystemExit (own_model.py:11); repair it there"),
        (
            "def read():\n    yield 1\n    raise OSError('me')\ndef make(): return workload(batches=read())",
            "reading the batches of own_model.py:make failed: OSError: me (own_model.py:13); repair it there",
        ),
    ],
)
def test_what_the_users_code_raises_is_told_with_its_line(
    code: str, expected: str, written: Written, options: Options, sentence: Callable[..., str]
) -> None:
    path = written(code)
    message = sentence(lambda: build(f"{path}:make", options()), exit_code=3)
    assert message.startswith(expected)
    assert "(own_model.py:1" in message


def test_a_missing_file_and_a_missing_function_name_are_told(
    tmp_path: Path, options: Options, sentence: Callable[..., str]
) -> None:
    assert sentence(lambda: build(f"{tmp_path}/none.py:make", options())) == (
        f"there is no file {tmp_path}/none.py; give the path of a Python file, as in my_file.py:name"
    )
    assert sentence(lambda: build("train.py", options())) == (
        "train.py names no workload factory; add its name, as in train.py:name"
    )


def test_memory_that_the_factory_could_not_get_is_told(
    written: Written, options: Options, sentence: Callable[..., str]
) -> None:
    path = written("def make(): return torch.empty(2**60)")
    message = sentence(lambda: build(f"{path}:make", options()), exit_code=3)
    assert message.startswith("own_model.py:make failed: RuntimeError: ")


def test_a_data_loader_is_checked_without_starting_its_workers(written: Written, options: Options) -> None:
    path = written("""
from torch.utils.data import DataLoader

class Untouched(DataLoader):
    def __iter__(self):
        raise AssertionError("iterated")

def make(): return workload(batches=Untouched([1, 2], num_workers=1))
""")
    assert isinstance(build(f"{path}:make", options()), Workload)
