"""Reads a record back, also that of a run that was killed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import orjson

from anomprof.errors import UserError
from anomprof.record.entries import Reading, Record, Sample, Site, Step, Turn

SCHEMA = 1
FILE_NAME = "record.sqlite"


def load(folder: Path) -> Record:
    """Reads the record in ``folder``, also that of a run that was killed.

    Raises:
        UserError: There is no record, it is broken, or a newer anomprof wrote it.
    """
    path = folder / FILE_NAME if folder.is_dir() else folder
    if not path.is_file():
        raise UserError(f"no record in {folder} (looked for {FILE_NAME}); give the folder that 'bench' wrote")
    try:
        connection = _connect_for_reading(path)
        try:
            return _read(path, connection)
        finally:
            connection.close()
    except (sqlite3.Error, ValueError, TypeError) as error:  # bytes that are no text, text that is no JSON
        raise UserError(
            f"{path} cannot be read as a record ({error}); it is damaged or not a record"
        ) from error


def _read(path: Path, connection: sqlite3.Connection) -> Record:
    facts = {key: orjson.loads(value) for key, value in connection.execute("SELECT key, value FROM fact")}
    schema = facts.get("schema")
    if schema is None:
        raise UserError(
            f"{path} ends before its first entry: the run was killed while it started; run it again"
        )
    if schema > SCHEMA:
        raise UserError(
            f"{path} has format {schema} and this anomprof reads up to {SCHEMA}; install a newer anomprof"
        )
    modes = connection.execute("SELECT name, facts FROM mode ORDER BY rowid")
    steps: dict[int, list[Step]] = {}
    for turn_id, *values in connection.execute("SELECT * FROM step ORDER BY turn, number"):
        steps.setdefault(turn_id, []).append(Step(*values))
    turns = connection.execute(
        "SELECT id, process, round, position, mode, started, facts FROM turn ORDER BY id"
    )
    readings = connection.execute("SELECT * FROM reading ORDER BY rowid")
    samples = connection.execute(
        "SELECT at, source, quantity, value, process FROM sample ORDER BY process, at"
    )
    return Record(
        facts=facts,
        modes={name: orjson.loads(value) for name, value in modes},
        turns=tuple(
            Turn(
                process, round_, position, mode, started, tuple(steps.get(id_, ())), orjson.loads(turn_facts)
            )
            for id_, process, round_, position, mode, started, turn_facts in turns
        ),
        readings=tuple(
            Reading(mode, quantity, value, Site(phase, module, op, ordinal), process)
            for process, mode, phase, module, op, ordinal, quantity, value in readings
        ),
        samples=tuple(Sample(*row) for row in samples),
    )


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    """Opens a record without changing it, also from a folder that may only be read."""
    try:
        # Rolls back what a killed run had begun to write; needs a folder that may be written.
        connection = sqlite3.connect(path, timeout=30)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
    return connection
