from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from anomprof.errors import UserError
from anomprof.workloads import WorkloadOptions

CPU = torch.device("cpu")


@pytest.fixture
def options() -> Callable[..., WorkloadOptions]:
    def make(**choices: Any) -> WorkloadOptions:
        return WorkloadOptions(CPU, **choices)

    return make


@pytest.fixture
def sentence() -> Callable[..., str]:
    """Runs something that must fail, and returns its message after checking its form."""

    def run(act: Callable[[], Any], exit_code: int = 2) -> str:
        # Not pytest.raises: what it keeps forms a cycle, and a DataLoader in a cycle takes 5 seconds to end.
        try:
            act()
        except UserError as error:
            message, code = str(error), error.exit_code
        else:
            pytest.fail("nothing was refused")
        assert code == exit_code, message
        assert "\n" not in message
        return message

    return run


@pytest.fixture
def picture_folder(tmp_path: Path) -> Path:
    """Five pictures in two classes, each of one grey value, which is its name."""
    folder = tmp_path / "pictures"
    for name, value, suffix in (
        ("cat", 10, "png"),
        ("cat", 60, "png"),
        ("cat", 110, "jpg"),
        ("dog", 160, "JPEG"),
        ("dog", 210, "png"),
    ):
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (value, value, value)).save(folder / name / f"{value}.{suffix}")
    (folder / "dog" / "notes.txt").write_text("not a picture")
    (folder / ".cache").mkdir()
    return folder
