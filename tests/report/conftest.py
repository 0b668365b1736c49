from __future__ import annotations

from pathlib import Path

import pytest
from sample_record import write_record

from anomprof import report


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample record and its report; only to be read."""
    folder = write_record(tmp_path_factory.mktemp("sample") / "run")
    report.write(folder)
    return folder
