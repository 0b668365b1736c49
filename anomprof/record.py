"""The record: one SQLite file with everything a run measured, written as the run goes.

All that is shown later derives from it, without torch. The file is never a pickle, so opening a
record from a stranger runs no code.

Format history (``SCHEMA``):

1. First version: tables ``fact``, ``mode``, ``turn``, ``step``, ``reading``, ``sample``.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from anomprof.errors import COULD_NOT_MEASURE, UserError

SCHEMA = 1
FILE_NAME = "record.sqlite"

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


@dataclass(frozen=True)
class Quantity:
    """What a reading or sample measures.

    Attributes:
        name: As stored; its last word is the unit where there is one.
        adds: Whether values of several sites add up to a meaningful total.
        meaning: One line for people.
    """

    name: str
    adds: bool
    meaning: str


#: Every quantity a record may hold. Writing any other name is a mistake in our code.
QUANTITIES: Mapping[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("calls", True, "how often the op ran in one step"),
        Quantity("self_seconds", True, "CPU time inside the op, its inner ops not counted"),
        Quantity("device_seconds", True, "time of the device kernels that the op launched"),
        Quantity("memory_bytes", True, "bytes allocated minus bytes freed inside the op itself"),
        Quantity("base_bytes", False, "tensors alive before the step: parameters, buffers, optimizer, batch"),
        Quantity("peak_bytes", False, "most tensor bytes alive at one time in a step"),
        Quantity(
            "host_syncs", True, "how often the host had to wait for a value from the device in one step"
        ),
        Quantity("step_seconds", False, "length of the profiled step; never used as a step time"),
        Quantity("power_watts", False, "power drawn by the device"),
        Quantity("temperature_celsius", False, "temperature of the device"),
        Quantity("sm_clock_hertz", False, "clock of the device's processors"),
        Quantity("memory_clock_hertz", False, "clock of the device's memory"),
        Quantity("throttle_reasons", False, "bits of NVML's current clocks event reasons"),
        Quantity("utilization_ratio", False, "share of time in which a kernel ran"),
        Quantity("used_bytes", False, "memory of the device in use by all processes"),
        Quantity("ecc_errors_corrected", False, "corrected memory errors since the driver was loaded"),
        Quantity("ecc_errors_uncorrected", False, "uncorrected memory errors since the driver was loaded"),
        Quantity("load_average", False, "runnable processes on the host, averaged over one minute"),
        Quantity(
            "other_cpu_ratio",
            False,
            "share of the host's CPU time used by other processes since the last sample",
        ),
        Quantity("cpu_clock_hertz", False, "mean clock of the host's cores"),
        Quantity("available_bytes", False, "memory that the host could still give out"),
    )
}


@dataclass(frozen=True)
class Site:
    """Where in a step: these four are the identity; line, shape and dtype would be attributes.

    Empty strings and ordinal 0 mean "all of them": a reading of a whole op has no phase or module.
    """

    phase: str = ""
    module: str = ""
    op: str = ""
    ordinal: int = 0


@dataclass(frozen=True)
class Reading:
    """One value of one quantity at one site of a mode's step."""

    mode: str
    quantity: str
    value: float
    site: Site = Site()
    process: int = 0


@dataclass(frozen=True)
class OpRow:
    """One op in one mode's profiled step.

    Attributes:
        self_seconds: CPU time inside the op without its inner ops.
        device_seconds: Time of the device kernels that it launched.
        memory_bytes: Bytes allocated minus bytes freed inside the op itself.
    """

    op: str
    calls: int
    self_seconds: float
    device_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Sample:
    """One value of one quantity of the machine at one moment.

    Attributes:
        at: Seconds on the clock of ``time.perf_counter()`` (the clock of turns and steps too).
        source: ``"host"`` or a device such as ``"cuda:0"``.
    """

    at: float
    source: str
    quantity: str
    value: float
    process: int = 0


@dataclass(frozen=True)
class Step:
    """One timed training step.

    Attributes:
        started: Seconds on ``time.perf_counter()``.
        wait_seconds: Time waiting for its batch, before the step; not part of ``step_seconds``.
        step_seconds: The whole step, entering and leaving the mode included.
        edge_seconds: The part of ``step_seconds`` spent entering and leaving the mode.
    """

    number: int
    started: float
    wait_seconds: float
    step_seconds: float
    edge_seconds: float


@dataclass(frozen=True)
class Turn:
    """One mode's turn within a round: a settling step and then the timed steps.

    Attributes:
        process: 0-based; each process builds the workload afresh.
        round: 0-based, within the process.
        position: Place within the round's shuffled order.
        started: Seconds on ``time.perf_counter()``.
        facts: ``parameters_digest``, ``buffers_digest``, ``final_loss``, ``settle_seconds``,
            ``energy_joules`` and whatever the mode counted; absent where the turn was cut off.
    """

    process: int
    round: int
    position: int
    mode: str
    started: float
    steps: tuple[Step, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """A saved run, read back.

    Attributes:
        facts: Plan, workload, environment and the like, by key.
        modes: Mode name -> its facts (availability, proof, ...), in the order of the plan.
    """

    facts: Mapping[str, Any]
    modes: Mapping[str, Mapping[str, Any]]
    turns: tuple[Turn, ...]
    readings: tuple[Reading, ...]
    samples: tuple[Sample, ...]


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


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    return connection


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    """Opens a record without changing it, also from a folder that may only be read."""
    try:
        # Rolls back what a killed run had begun to write; needs a folder that may be written.
        connection = sqlite3.connect(path, timeout=30)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
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
