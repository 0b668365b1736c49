"""Batches of pictures: fixed random ones, or those of a folder ``class/picture.jpg|png``.

Neither is augmented at random: every pass yields the same batches in the same order, so that every
mode takes the same steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader, Dataset

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.userfile import in_short
from anomprof.workloads.memory import require_memory

#: Distinct batches, at least.
BATCHES = 4

Batch = tuple[torch.Tensor, torch.Tensor]

_SUFFIXES = {".jpg", ".jpeg", ".png"}
# The usual evaluation transform resizes the shorter side to 256 and keeps the central 224: an edge
# of 1/16 of the side is cut off on every side.
_CUT_OFF_EDGE = 1 / 16
_MOST_WORKERS = 8


@dataclass(frozen=True)
class PictureFormat:
    """What a model takes.

    Attributes:
        size: Height and width in pixels.
        mode: Pillow's name of the colour channels: ``"RGB"`` or ``"L"`` (grey).
        mean: Subtracted from each channel after scaling to 0..1.
        std: Each channel is divided by this then.
    """

    size: int
    mode: str = "RGB"
    # Of ImageNet's training pictures, as used by nearly every published model.
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    @property
    def channels(self) -> int:
        """Number of colour channels."""
        return len(self.mean)


def synthetic_batches(
    form: PictureFormat, batch_size: int, classes: int, seed: int, device: torch.device, dtype: torch.dtype
) -> list[Batch]:
    """Returns fixed random batches (normal noise, as normalised pictures would be), on the device."""
    generator = torch.Generator(device).manual_seed(seed)
    shape = (batch_size, form.channels, form.size, form.size)
    require_memory(BATCHES * math.prod(shape) * dtype.itemsize, device)
    return [
        (
            torch.randn(shape, generator=generator, device=device, dtype=dtype),
            torch.randint(classes, (batch_size,), generator=generator, device=device),
        )
        for _ in range(BATCHES)
    ]


@dataclass(frozen=True)
class PictureFolder:
    """The pictures of a folder, in sorted order.

    Attributes:
        path: The folder.
        classes: Names of the class folders.
        pictures: Path and class number of every picture.
    """

    path: Path
    classes: tuple[str, ...]
    pictures: tuple[tuple[Path, int], ...]

    @classmethod
    def scan(cls, path: Path) -> PictureFolder:
        """Lists the folder without opening the pictures.

        Raises:
            UserError: It is missing, cannot be read, or holds no ``class/picture.jpg|png``.
        """
        if not path.exists():
            raise UserError(
                f"--data {path} does not exist; give a folder that holds class/picture.jpg or .png"
            )
        if not path.is_dir():
            raise UserError(
                f"--data {path} is a file and image models read a folder of class/picture.jpg or .png; "
                "give such a folder"
            )
        try:
            folders = sorted(
                entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith(".")
            )
            pictures = tuple(
                (picture, number)
                for number, folder in enumerate(folders)
                for picture in sorted(folder.iterdir())
                if picture.suffix.lower() in _SUFFIXES and not picture.name.startswith(".")
            )
        except OSError as error:
            raise UserError(
                f"--data {path} cannot be read ({error.strerror}: {error.filename}); "
                "give a folder you may read",
                COULD_NOT_MEASURE,
            ) from error
        if not folders:
            raise UserError(
                f"--data {path} holds no class folders; put the pictures into one folder per class, "
                "as in cat/1.jpg and dog/1.jpg"
            )
        if not pictures:
            raise UserError(
                f"none of the {len(folders)} class folders in --data {path} holds a picture; "
                "put .jpg or .png files into them"
            )
        return cls(path, tuple(folder.name for folder in folders), pictures)


@dataclass(frozen=True)
class BrokenPicture:
    """What a loader process yields in place of a picture that it cannot decode.

    A value and not an exception: an exception would cross the process border as a page of text.
    """

    path: Path
    reason: str


class DecodedPictures(Dataset["Batch | BrokenPicture"]):
    """Decodes pictures in a given order; one item is one whole batch.

    Args:
        batches: The pictures of each batch, with their class numbers.
        form: What to turn them into.
        dtype: Of the tensors.
    """

    def __init__(
        self, batches: list[list[tuple[Path, int]]], form: PictureFormat, dtype: torch.dtype
    ) -> None:
        self._batches = batches
        self._form = form
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Batch | BrokenPicture:
        tensors = []
        for path, _ in self._batches[index]:
            try:
                tensors.append(self._decode(path))
            # Pillow's decoders raise OSError, SyntaxError, ValueError and more on damaged files.
            except Exception as error:
                return BrokenPicture(path, in_short(error))
        mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (self._form.mean, self._form.std))
        pictures = (torch.stack(tensors).float() / 255 - mean) / std
        labels = torch.tensor([number for _, number in self._batches[index]])
        return pictures.to(self._dtype), labels

    def _decode(self, path: Path) -> torch.Tensor:
        size = (self._form.size, self._form.size)
        with Image.open(path) as picture:
            # Resizes the shorter side and crops the centre in one pass.
            fitted = ImageOps.fit(
                picture.convert(self._form.mode), size, Image.Resampling.BILINEAR, bleed=_CUT_OFF_EDGE
            )
        pixels = torch.from_numpy(np.array(fitted))
        return pixels.view(*size, -1).permute(2, 0, 1)


class PictureLoader:
    """Iterates over a folder's batches, decoded by worker processes that stay alive between passes.

    The pictures are shuffled once, with the seed. Where the folder holds fewer than ``BATCHES``
    batches, it is gone through again in another order. What does not fill a batch is left out.
    Only one pass can be under way at a time: the next one ends the one before.

    Raises (when iterated):
        UserError: A picture is broken, or a worker process died.
    """

    def __init__(
        self,
        folder: PictureFolder,
        form: PictureFormat,
        batch_size: int,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        count = len(folder.pictures)
        order: list[int] = []
        while len(order) < max(BATCHES * batch_size, count):
            order += torch.randperm(count, generator=generator).tolist()
        batches = [
            [folder.pictures[index] for index in order[start : start + batch_size]]
            for start in range(0, len(order) - batch_size + 1, batch_size)
        ]
        self.workers = worker_count()
        self._folder = folder
        self._loader: DataLoader[Batch | BrokenPicture] = DataLoader(
            DecodedPictures(batches, form, dtype),
            batch_size=None,
            num_workers=self.workers,
            persistent_workers=True,
            pin_memory=device.type == "cuda",
            # Its own generator: otherwise each pass would draw from torch's, and shift the training's.
            generator=generator,
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        iterator: Iterator[Batch | BrokenPicture] | None = None
        while True:
            try:
                # Starting the processes may fail for want of memory as well.
                iterator = iter(self._loader) if iterator is None else iterator
                batch = next(iterator)
            except StopIteration:
                return
            except (RuntimeError, OSError) as error:
                raise UserError(
                    f"the processes that read --data {self._folder.path} failed with "
                    f"{in_short(error)}; free some memory or choose a smaller --batch-size",
                    COULD_NOT_MEASURE,
                ) from error
            if isinstance(batch, BrokenPicture):
                raise UserError(
                    f"{batch.path} cannot be read as a picture, it raised {batch.reason}; "
                    "repair it or take it out of --data",
                    COULD_NOT_MEASURE,
                )
            # Pinning memory turns the tuple into a list.
            pictures, labels = batch
            yield pictures, labels


def worker_count() -> int:
    """How many loader processes this machine has room for: one core is left to the training."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        cores = os.cpu_count() or 1
    return max(1, min(cores - 1, _MOST_WORKERS))
