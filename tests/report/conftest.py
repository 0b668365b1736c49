from __future__ import annotations

from pathlib import Path

import pytest

from anomprof import report
from tests.report.sample_record import write_record


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample record and its report; only to be read."""
    folder = write_record(tmp_path_factory.mktemp("sample") / "run")
    report.write(folder)
    return folder
