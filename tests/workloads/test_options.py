from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from anomprof.workloads import WorkloadOptions


@pytest.mark.parametrize("name", ["batch_size", "image_size", "sequence_length"])
@pytest.mark.parametrize("value", [0, -3])
def test_a_size_below_one_is_refused(
    options: Callable[..., WorkloadOptions], sentence: Callable[..., str], name: str, value: int
) -> None:
    option = "--" + name.replace("_", "-")
    assert (
        sentence(lambda: options(**{name: value})) == f"{option} is {value}; give a whole number of 1 or more"
    )


def test_an_unknown_optimizer_is_refused_with_the_nearest(
    options: Callable[..., WorkloadOptions], sentence: Callable[..., str]
) -> None:
    message = sentence(lambda: options(optimizer="adamv"))
    assert message.startswith("no optimizer is called 'adamv' (did you mean 'adam")
    assert message.endswith("known are sgd, adam, adamw, nadam, rmsprop, adagrad")


def test_a_dtype_that_cannot_be_trained_is_refused(
    options: Callable[..., WorkloadOptions], sentence: Callable[..., str]
) -> None:
    assert "choose --dtype from float32" in sentence(lambda: options(dtype=torch.int64))


def test_a_negative_seed_is_refused(
    options: Callable[..., WorkloadOptions], sentence: Callable[..., str]
) -> None:
    assert sentence(lambda: options(seed=-1)).startswith("--seed is -1; ")
