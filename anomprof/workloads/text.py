"""Batches of text, one token per byte."""

from __future__ import annotations

import mmap
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.workloads.memory import require_memory

#: Tokens that a byte can be.
VOCABULARY = 256
#: Batches before they repeat.
BATCHES = 16

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Text:
    """Bytes to train on.

    Attributes:
        content: The bytes; a file is mapped and not read, so it may be larger than memory.
        source: Where they are from, in words.
    """

    content: bytes | mmap.mmap
    source: str

    @classmethod
    def from_python(cls) -> Text:
        """The text of Python's own ``help()`` topics: real English that every installation carries.

        Raises:
            UserError: This Python was installed without its standard library's ``pydoc_data``.
        """
        try:
            from pydoc_data.topics import topics
        except ImportError as error:
            raise UserError(
                "this Python lacks the module pydoc_data, whose text is the default; "
                "give a text file with --data",
                COULD_NOT_MEASURE,
            ) from error
        content = "\n".join(topics[name] for name in sorted(topics)).encode()
        version = platform.python_version()
        return cls(content, f"help topics of Python {version}, {len(content):,} bytes")

    @classmethod
    def from_file(cls, path: Path) -> Text:
        """Opens a file.

        Raises:
            UserError: It is missing, a folder, empty, or may not be read.
        """
        if not path.exists():
            raise UserError(f"--data {path} does not exist; give a text file")
        if path.is_dir():
            raise UserError(f"--data {path} is a folder and language models read a text file; give a file")
        try:
            with path.open("rb") as file:
                if path.stat().st_size == 0:
                    raise UserError(f"--data {path} is empty; give a file with text in it")
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise UserError(
                f"--data {path} cannot be read ({error}); give a file you may read", COULD_NOT_MEASURE
            ) from error
        return cls(content, f"text file {path.name}, {len(content):,} bytes")


def text_batches(
    text: Text, batch_size: int, sequence_length: int, seed: int, device: torch.device
) -> list[Batch]:
    """Returns fixed batches (tokens, the tokens that follow them), each of shape (batch, length).

    Raises:
        UserError: The text is too short.
    """
    # One byte more than a sequence is its last target; one start per batch keeps batches apart.
    needed = sequence_length + BATCHES
    if len(text.content) < needed:
        raise UserError(
            f"sequences of {sequence_length:,} bytes take a text of {needed:,} bytes or more, "
            f"and this is one of {len(text.content):,} ({text.source}); "
            "give a longer text or a smaller --sequence-length"
        )
    # Two tensors of 8 bytes a token, and as much again while they are made.
    require_memory(32 * BATCHES * batch_size * sequence_length, device)
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(BATCHES):
        starts = torch.randint(len(text.content) - sequence_length, (batch_size,), generator=generator)
        windows = b"".join(text.content[start : start + sequence_length + 1] for start in starts.tolist())
        tokens = np.frombuffer(windows, dtype=np.uint8).reshape(batch_size, sequence_length + 1)
        both = torch.from_numpy(tokens.astype(np.int64)).to(device)
        batches.append((both[:, :-1].contiguous(), both[:, 1:].contiguous()))
    return batches
