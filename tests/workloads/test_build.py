"""The package's small public surface."""

from __future__ import annotations

from collections.abc import Callable

import anomprof.workloads
from anomprof.workloads import WorkloadOptions, available, build

Options = Callable[..., WorkloadOptions]


def test_the_public_names_are_these() -> None:
    assert anomprof.workloads.__all__ == [
        "Listing",
        "WorkloadOptions",
        "available",
        "build",
        "takes_any_image_size",
    ]


def test_everything_that_can_be_built_is_listed_in_one_line_each() -> None:
    assert [entry.name for entry in available()] == [
        "resnet50",
        "resnet18",
        "vit",
        "gpt",
        "lstm",
        "mlp",
        "torchvision:NAME",
        "timm:NAME",
        "file.py:factory",
    ]
    name, description, reason = available()[0]
    assert (name, reason) == ("resnet50", None)
    assert description == "ResNet-50, pictures of 224 px (25,557,032 parameters)"
    assert not any("\n" in entry.description for entry in available())


def test_an_unknown_workload_is_refused_with_the_nearest(
    options: Options, sentence: Callable[..., str]
) -> None:
    assert sentence(lambda: build("resnet5", options())) == (
        "no workload is called 'resnet5' (did you mean 'resnet50'?); known are resnet50, resnet18, vit, gpt, "
        "lstm, mlp, torchvision:NAME, timm:NAME, file.py:factory"
    )
    assert "no workload is called 'horse:power'; known are" in sentence(
        lambda: build("horse:power", options())
    )


def test_a_model_that_does_not_fit_is_told(options: Options, sentence: Callable[..., str]) -> None:
    # 10**7 x 10**7 patches need 10**14 positions of 192 values of 4 bytes, long before there is a batch.
    message = sentence(lambda: build("vit", options(image_size=16 * 10**7, batch_size=1)), exit_code=3)
    assert message == (
        "vit does not fit into the memory of cpu; "
        "choose a smaller --batch-size, or smaller pictures or sequences"
    )
