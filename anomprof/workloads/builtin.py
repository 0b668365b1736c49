"""The workloads that anomprof brings along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anomprof.errors import UserError
from anomprof.workload import Workload
from anomprof.workloads import mlp, resnet, vit
from anomprof.workloads.assembly import Defaults, language_workload, picture_workload
from anomprof.workloads.gpt import GPT, GPTConfig
from anomprof.workloads.lstm import LSTMLanguageModel
from anomprof.workloads.options import WorkloadOptions
from anomprof.workloads.pictures import PictureFormat

# ImageNet's, for which the picture models were published.
CLASSES = 1000
IMAGE_SIZE = 224

# A rate of 0.1 for batches of 256 is usual; batches here are smaller, and the rate with them.
_RESNET_RATES = {"sgd": 0.001}
_VIT_RATES = {"adam": 5e-4, "adamw": 5e-4, "nadam": 5e-4}


@dataclass(frozen=True)
class BuiltIn:
    """One built-in workload.

    Attributes:
        make: Builds it.
        description: One line.
        parameters: How many the default model has.
        any_image_size: Whether it takes pictures of other sizes than its own.
    """

    make: Callable[[WorkloadOptions], Workload]
    description: str
    parameters: int
    any_image_size: bool = False


def make_resnet18(options: WorkloadOptions) -> Workload:
    """Builds ``resnet18``."""
    defaults = Defaults(4, 64, "sgd", _RESNET_RATES)
    form = _resnet_format("resnet18", defaults, options)
    return picture_workload("resnet18", resnet.resnet18, form, CLASSES, defaults, options)


def make_resnet50(options: WorkloadOptions) -> Workload:
    """Builds ``resnet50``."""
    defaults = Defaults(2, 32, "sgd", _RESNET_RATES)
    form = _resnet_format("resnet50", defaults, options)
    return picture_workload("resnet50", resnet.resnet50, form, CLASSES, defaults, options)


def make_vit(options: WorkloadOptions) -> Workload:
    """Builds ``vit``."""
    size = options.image_size or IMAGE_SIZE
    if size % vit.PATCH:
        lower = size // vit.PATCH * vit.PATCH
        nearest = f"{lower} or {lower + vit.PATCH}" if lower else f"{vit.PATCH}"
        raise UserError(
            f"--image-size is {size}, and vit cuts pictures into squares of 16 px; choose {nearest}"
        )
    return picture_workload(
        "vit",
        lambda classes: vit.VisionTransformer(size, classes),
        PictureFormat(size),
        CLASSES,
        Defaults(4, 64, "adamw", _VIT_RATES),
        options,
    )


def make_gpt(options: WorkloadOptions) -> Workload:
    """Builds ``gpt``."""
    return language_workload(
        "gpt",
        lambda vocabulary, length: GPT(GPTConfig(sequence_length=length, vocabulary=vocabulary)),
        GPTConfig().sequence_length,
        Defaults(12, 64, "adamw"),
        options,
    )


def make_lstm(options: WorkloadOptions) -> Workload:
    """Builds ``lstm``."""
    # 20 sequences of 20 tokens, as published.
    defaults = Defaults(20, 20, "adamw")
    return language_workload(
        "lstm", lambda vocabulary, _: LSTMLanguageModel(vocabulary), 20, defaults, options
    )


def make_mlp(options: WorkloadOptions) -> Workload:
    """Builds ``mlp``."""
    if options.image_size not in (None, mlp.IMAGE_SIZE):
        raise UserError(
            f"--image-size is {options.image_size}, and mlp takes pictures of 28 px only; leave it out"
        )
    # Mean and deviation of MNIST's training pictures.
    form = PictureFormat(mlp.IMAGE_SIZE, "L", (0.1307,), (0.3081,))
    return picture_workload("mlp", mlp.MLP, form, 10, Defaults(128, 128, "sgd"), options)


def _resnet_format(name: str, defaults: Defaults, options: WorkloadOptions) -> PictureFormat:
    size = options.image_size or IMAGE_SIZE
    if size <= resnet.TOTAL_STRIDE and defaults.batch_size(options) == 1:
        raise UserError(
            f"one picture of {size} px leaves {name}'s last batch norm a single value to normalise; "
            "choose --batch-size 2 or --image-size 33 or more"
        )
    return PictureFormat(size)


#: Name -> workload.
BUILT_IN: Mapping[str, BuiltIn] = {
    "resnet50": BuiltIn(make_resnet50, "ResNet-50, pictures of 224 px", 25_557_032, any_image_size=True),
    "resnet18": BuiltIn(make_resnet18, "ResNet-18, pictures of 224 px", 11_689_512, any_image_size=True),
    "vit": BuiltIn(make_vit, "ViT-Ti/16, pictures of 224 px", 5_717_416, any_image_size=True),
    "gpt": BuiltIn(make_gpt, "GPT, bytes of text", 828_544),
    "lstm": BuiltIn(make_lstm, "LSTM, bytes of text", 745_856),
    "mlp": BuiltIn(make_mlp, "784-512-512-10, grey pictures of 28 px", 669_706),
}
