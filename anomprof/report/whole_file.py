"""Files that readers see whole or not at all, also when the disk is full."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from anomprof.errors import COULD_NOT_MEASURE, UserError


def write_whole(path: Path, fill: Callable[[TextIO], object], hint: str) -> Path:
    """Fills a file under another name first: readers find the old file or the new, never a part.

    ``hint`` ends the message if it fails: what the user should know or do.

    Raises:
        UserError: The file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            fill(file)
        draft.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror or error}); {hint}", COULD_NOT_MEASURE
        ) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return path
