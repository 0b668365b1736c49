"""Classifiers of torchvision and timm, where those packages are installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.names import closest
from anomprof.userfile import in_short
from anomprof.workload import Workload
from anomprof.workloads.assembly import Defaults, picture_workload
from anomprof.workloads.options import WorkloadOptions
from anomprof.workloads.pictures import PictureFormat

#: Packages whose models can be named, as in ``torchvision:resnet50``.
PACKAGES = ("torchvision", "timm")

_CLASSES = 1000
_IMAGE_SIZE = 224
_DEFAULTS = Defaults(2, 32, "sgd", {"sgd": 0.001})
# Weight of the auxiliary classifiers' losses, in the papers of GoogLeNet and Inception v3.
_AUXILIARY_WEIGHT = 0.3


def unavailable_reason(package: str) -> str | None:
    """Why a package's models cannot be used, or None; does not import it."""
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed; install it with 'pip install {package}'"
    return None


def build_external(package: str, name: str, options: WorkloadOptions) -> Workload:
    """Builds the workload ``package:name``.

    Its blocks are not known, so the checkpoint modes are not available for it.

    Raises:
        UserError: The package is missing or broken, has no such classifier, or cannot build it.
    """
    reason = unavailable_reason(package)
    if reason is not None:
        raise UserError(reason)
    try:
        module = importlib.import_module(package)
        known = _torchvision_names(module) if package == "torchvision" else module.list_models()
    except Exception as error:  # a build for another torch fails in many ways
        raise UserError(
            f"{package} is installed, but importing it raised {in_short(error)}; "
            f"install the version that fits torch {torch.__version__}",
            COULD_NOT_MEASURE,
        ) from error
    # timm's names may carry a tag for pretrained weights, as in resnet50.a1_in1k.
    if name not in known and not (package == "timm" and name.partition(".")[0] in known):
        raise UserError(
            f"{package} has no classifier called {name!r}{closest(name, known, limit=3)}; "
            f"its documentation lists its {len(known)} models"
        )
    make = _torchvision_model if package == "torchvision" else _timm_model
    spec = f"{package}:{name}"
    size = options.image_size or _image_size(package, module, name)
    return picture_workload(
        spec,
        lambda classes: _guarded(spec, lambda: make(module, name, classes, size)),
        PictureFormat(size),
        _CLASSES,
        _DEFAULTS,
        options,
        loss=classify_with_auxiliaries,
    )


def classify_with_auxiliaries(model: nn.Module, batch: Any) -> torch.Tensor:
    """Cross entropy, also of models that return several logits in training."""
    pictures, labels = batch
    outputs = model(pictures)
    if isinstance(outputs, torch.Tensor):
        return F.cross_entropy(outputs, labels)
    main, *others = (output for output in outputs if output is not None)
    loss = F.cross_entropy(main, labels)
    for other in others:
        loss = loss + _AUXILIARY_WEIGHT * F.cross_entropy(other, labels)
    return loss


def _torchvision_names(torchvision: ModuleType) -> list[str]:
    # Without the module, it would also list models for detection, segmentation, video and flow.
    names: list[str] = torchvision.models.list_models(module=torchvision.models)
    return names


def _torchvision_model(torchvision: ModuleType, name: str, classes: int, size: int) -> nn.Module:
    settings = {"image_size": size} if name.startswith("vit_") else {}
    model: nn.Module = torchvision.models.get_model(name, weights=None, num_classes=classes, **settings)
    return model


def _timm_model(timm: ModuleType, name: str, classes: int, size: int) -> nn.Module:
    model: nn.Module
    try:
        model = timm.create_model(name, pretrained=False, num_classes=classes, img_size=size)
    except TypeError:
        # Only models that depend on the size, such as transformers, take it.
        model = timm.create_model(name, pretrained=False, num_classes=classes)
    return model


def _image_size(package: str, module: ModuleType, name: str) -> int:
    """The size that a model was published with."""
    if package == "torchvision":
        return 299 if name == "inception_v3" else _IMAGE_SIZE
    config = module.get_pretrained_cfg(name)
    return int(config.input_size[-1]) if config is not None else _IMAGE_SIZE


def _guarded(spec: str, make: Callable[[], nn.Module]) -> nn.Module:
    try:
        return make()
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        raise UserError(
            f"{spec} cannot be built, it raised {in_short(error)}; try another --image-size or another model",
            COULD_NOT_MEASURE,
        ) from error
