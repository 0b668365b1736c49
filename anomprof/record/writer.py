"""Writes a record as the run goes."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.record.entries import QUANTITIES, Reading, Sample, Step, Turn
from anomprof.record.reader import FILE_NAME, SCHEMA

#: The name of a record that ``--force`` is about to replace.
SUPERSEDED = "record.sqlite.old"

# Written data is handed to the operating system at least this often, so that a killed run loses no
# more than its last moments. Always between two timed steps, never inside one.
_COMMIT_EVERY_SECONDS = 0.5

_TABLES = """
CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE mode (name TEXT PRIMARY KEY, facts TEXT NOT NULL);
CREATE TABLE turn (
    id INTEGER PRIMARY KEY, process INTEGER NOT NULL, round INTEGER NOT NULL, position INTEGER NOT NULL,
    mode TEXT NOT NULL, started REAL NOT NULL, facts TEXT NOT NULL DEFAULT '{}');
CREATE TABLE step (
    turn INTEGER NOT NULL REFERENCES turn, number INTEGER NOT NULL, started REAL NOT NULL,
    wait_seconds REAL NOT NULL, step_seconds REAL NOT NULL, edge_seconds REAL NOT NULL,
    PRIMARY KEY (turn, number)) WITHOUT ROWID;
CREATE TABLE reading (
    process INTEGER NOT NULL, mode TEXT NOT NULL, phase TEXT NOT NULL, module TEXT NOT NULL,
    op TEXT NOT NULL, ordinal INTEGER NOT NULL, quantity TEXT NOT NULL, value REAL NOT NULL);
CREATE TABLE sample (
    process INTEGER NOT NULL, at REAL NOT NULL, source TEXT NOT NULL, quantity TEXT NOT NULL,
    value REAL NOT NULL);
"""


class RecordWriter:
    """Writes a record as the run goes.

    Journal mode and synchronisation are chosen so that a killed process loses nothing that was
    committed and no step waits for a disk; only a power failure could. (Write-ahead logging would
    need shared memory, which network folders lack.)
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, process: int) -> None:
        self.folder = folder
        self.process = process
        #: Whether a write failed: then what there is must stay, as little as it may be.
        self.failed = False
        self._connection = connection
        self._committed = time.perf_counter()

    @classmethod
    def create(cls, folder: Path, *, force: bool = False) -> RecordWriter:
        """Makes the folder and an empty record in it.

        Raises:
            UserError: The folder holds a record and ``force`` is false, or cannot be written.
        """
        path = folder / FILE_NAME
        if path.exists() and not force:
            raise UserError(
                f"{folder} already holds a record; give another with --out, or overwrite it with --force"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.with_name(FILE_NAME + "-journal").unlink(missing_ok=True)
            if path.exists():  # kept until the new one holds something
                path.replace(folder / SUPERSEDED)
            connection = _connect(path)
        except (OSError, sqlite3.Error) as error:
            raise UserError(
                f"cannot write to {folder} ({_reason(error)}); name a folder you may write to with --out",
                COULD_NOT_MEASURE,
            ) from error
        writer = cls(folder, connection, process=0)
        with writer.guarded():
            connection.executescript(_TABLES)
        writer.fact("schema", SCHEMA)
        return writer

    @classmethod
    def join(cls, folder: Path, process: int) -> RecordWriter:
        """Opens a record that another process made, to add this process's share."""
        return cls(folder, _connect(folder / FILE_NAME), process)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Turns a failing disk into one sentence; what was committed before stays readable."""
        try:
            yield
        except sqlite3.Error as error:
            self.failed = True
            raise UserError(
                f"cannot write to {self.folder / FILE_NAME} ({error}); what was measured until here is kept: "
                f"free some space, then read it with 'python -m anomprof report {self.folder}'",
                COULD_NOT_MEASURE,
            ) from error

    def fact(self, key: str, value: Any) -> None:
        """Stores or replaces one fact about the whole run."""
        self._write("INSERT OR REPLACE INTO fact VALUES (?, ?)", [(key, _dump(value))])
        self.commit()

    def mode(self, name: str, facts: Mapping[str, Any]) -> None:
        """Stores or replaces what is known of a mode."""
        # An update keeps the row's place, and with it the order of the plan.
        self._write(
            "INSERT INTO mode VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET facts = excluded.facts",
            [(name, _dump(facts))],
        )
        self.commit()

    def begin_turn(self, turn: Turn) -> int:
        """Stores a turn that is about to start; its steps and facts follow.

        Returns:
            The turn's id, for :meth:`step` and :meth:`end_turn`.
        """
        with self.guarded():
            cursor = self._connection.execute(
                "INSERT INTO turn (process, round, position, mode, started, facts) VALUES (?, ?, ?, ?, ?, ?)",
                (self.process, turn.round, turn.position, turn.mode, turn.started, _dump(turn.facts)),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def step(self, turn_id: int, step: Step) -> None:
        """Stores one timed step."""
        row = (turn_id, step.number, step.started, step.wait_seconds, step.step_seconds, step.edge_seconds)
        self._write("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?)", [row])
        if time.perf_counter() - self._committed > _COMMIT_EVERY_SECONDS:
            self.commit()

    def end_turn(self, turn_id: int, facts: Mapping[str, Any]) -> None:
        """Completes a turn with what was known only at its end."""
        self._write("UPDATE turn SET facts = ? WHERE id = ?", [(_dump(facts), turn_id)])
        self.commit()

    def readings(self, readings: Iterable[Reading]) -> None:
        """Stores readings of this process."""
        rows = []
        for reading in readings:
            _check_quantity(reading.quantity)
            site = reading.site
            rows.append(
                (
                    *(self.process, reading.mode, site.phase, site.module, site.op, site.ordinal),
                    *(reading.quantity, float(reading.value)),
                )
            )
        self._write("INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.commit()

    def samples(self, samples: Iterable[Sample]) -> None:
        """Stores samples of this process."""
        rows = []
        for sample in samples:
            _check_quantity(sample.quantity)
            rows.append((self.process, sample.at, sample.source, sample.quantity, float(sample.value)))
        self._write("INSERT INTO sample VALUES (?, ?, ?, ?, ?)", rows)

    def commit(self) -> None:
        """Hands everything written so far to the operating system."""
        with self.guarded():
            self._connection.commit()
        self._committed = time.perf_counter()

    def close(self) -> None:
        """Commits and closes the file. A failing disk was already reported by the write before."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.commit()
            self._connection.execute("PRAGMA journal_mode = DELETE")  # leaves one file, not two
        self._connection.close()

    def _write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self.guarded():
            self._connection.executemany(statement, rows)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    return connection


def _dump(value: Any) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except TypeError:  # text that is no Unicode (a file name, say), or a value that JSON has no word for
        return orjson.dumps(_plain(value)).decode()


def _plain(value: Any) -> Any:
    """Returns the value with all that JSON cannot hold turned into text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value).encode("utf-8", "backslashreplace").decode()


def _check_quantity(name: str) -> None:
    if name not in QUANTITIES:
        raise KeyError(f"unknown quantity {name!r}: add it to record.QUANTITIES")


def _reason(error: OSError | sqlite3.Error) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
