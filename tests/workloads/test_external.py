"""With stand-ins for torchvision and timm, which have the few functions of them that are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from anomprof.workloads import WorkloadOptions, available, build, external
from anomprof.workloads.external import classify_with_auxiliaries

Options = Callable[..., WorkloadOptions]

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, classes, size=None):
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, classes)
    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))
"""
TORCHVISION = """
import sys
from ._net import Net

def list_models(module=None):
    classifiers = ["resnet18", "resnet50", "vit_b_16", "inception_v3", "picky"]
    return classifiers if module is sys.modules[__name__] else [*classifiers, "raft_large"]

def get_model(name, weights="unset", num_classes=None, **settings):
    assert weights is None
    if name == "picky":
        raise ValueError("not today\\nor ever")
    return Net(num_classes, settings.get("image_size"))
"""
TIMM = """
from types import SimpleNamespace
from ._net import Net

def list_models():
    return ["resnet50", "vit_tiny_patch16_224"]

def get_pretrained_cfg(name):
    return SimpleNamespace(input_size=(3, 160, 160)) if name.startswith("resnet50") else None

def create_model(name, pretrained=True, num_classes=None, **settings):
    assert not pretrained
    if name.startswith("resnet") and settings:
        raise TypeError("unexpected keyword argument 'img_size'")
    return Net(num_classes, settings.get("img_size"))
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, files in (
        ("torchvision", {"__init__.py": "from . import models", "models.py": TORCHVISION}),
        ("timm", {"__init__.py": TIMM}),
    ):
        (tmp_path / name).mkdir()
        for file, code in (files | {"_net.py": NET}).items():
            (tmp_path / name / file).write_text(code)
    _forget()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    _forget()


def _forget() -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in ("torchvision", "timm"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("spec", "size", "told"),
    [
        ("torchvision:resnet18", 224, None),
        ("torchvision:vit_b_16", 224, 224),
        ("torchvision:inception_v3", 299, None),
        ("timm:resnet50", 160, None),
        ("timm:resnet50.a1_in1k", 160, None),
        ("timm:vit_tiny_patch16_224", 224, 224),
    ],
)
def test_a_classifier_of_a_package_takes_a_step(
    spec: str, size: int, told: int | None, packages: Path, options: Options
) -> None:
    workload = build(spec, options(batch_size=1))
    batch = next(iter(workload.batches))
    workload.loss(workload.model, batch).backward()
    workload.optimizer.step()
    assert batch[0].shape == (1, 3, size, size)
    assert workload.model.size == told
    assert workload.name == spec
    assert workload.facts["image size"] == f"{size} px"
    assert workload.facts["classes"] == "1000"


def test_the_users_image_size_is_taken(packages: Path, options: Options) -> None:
    workload = build("timm:vit_tiny_patch16_224", options(batch_size=1, image_size=32))
    assert workload.model.size == 32


def test_an_unknown_model_is_refused_with_those_that_are_near(
    packages: Path, options: Options, sentence: Callable[..., str]
) -> None:
    message = sentence(lambda: build("torchvision:resnet5", options()))
    assert message == (
        "torchvision has no classifier called 'resnet5' (did you mean 'resnet50' or 'resnet18'?); "
        "its documentation lists its 5 models"
    )
    # Optical flow is no classification.
    assert "no classifier called 'raft_large'" in sentence(lambda: build("torchvision:raft_large", options()))
    assert "no classifier called ''" in sentence(lambda: build("timm:", options()))


def test_a_model_that_cannot_be_built_is_told(
    packages: Path, options: Options, sentence: Callable[..., str]
) -> None:
    assert sentence(lambda: build("torchvision:picky", options()), exit_code=3) == (
        "torchvision:picky cannot be built, it raised ValueError: not today; "
        "try another --image-size or another model"
    )


def test_a_broken_package_is_told(packages: Path, options: Options, sentence: Callable[..., str]) -> None:
    (packages / "timm" / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    message = sentence(lambda: build("timm:resnet50", options()), exit_code=3)
    assert message == (
        "timm is installed, but importing it raised RuntimeError: operator torchvision::nms does not exist; "
        f"install the version that fits torch {torch.__version__}"
    )


def test_a_missing_package_is_told_and_listed(
    options: Options, sentence: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external.importlib.util, "find_spec", lambda _: None)
    reason = "torchvision is not installed; install it with 'pip install torchvision'"
    assert sentence(lambda: build("torchvision:resnet18", options())) == reason
    assert {entry.name: entry.unavailable_reason for entry in available()}["torchvision:NAME"] == reason


def test_listing_does_not_import_the_packages(packages: Path) -> None:
    assert all(entry.unavailable_reason is None for entry in available())
    assert "torchvision" not in sys.modules
    assert "timm" not in sys.modules


def test_auxiliary_logits_count_three_tenths() -> None:
    class Several(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
            return x, x, None

    logits, labels = torch.zeros(2, 4), torch.tensor([0, 3])
    # ln(4) = 1.38629 for each; 1.38629 * (1 + 0.3)
    loss = classify_with_auxiliaries(Several(), (logits, labels))
    assert loss.item() == pytest.approx(1.80218, abs=1e-5)
