"""The record of a watched run, written whenever something is found."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from anomprof.errors import UserError
from anomprof.findings import Findings
from anomprof.record import FILE_NAME
from anomprof.record.writer import RecordWriter


class Journal:
    """Opens the record for each entry and closes it again: forked processes must not share a connection.

    A disk that cannot be written to is reported by who writes ``findings.json``.

    Args:
        folder: Where the record is.
        facts: What is known of the run at its start.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        with contextlib.suppress(UserError):
            writer = RecordWriter.create(folder, force=True)
            for key, value in {"kind": "run", **facts}.items():
                writer.fact(key, value)
            writer.close()

    def write(self, findings: Findings) -> None:
        """Stores the findings so far."""
        if not (self._folder / FILE_NAME).exists():
            return
        with contextlib.suppress(UserError):
            writer = RecordWriter.join(self._folder, 0)
            writer.fact("findings", orjson.loads(findings.to_json()))
            writer.close()
