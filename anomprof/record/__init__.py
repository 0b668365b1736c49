"""The record: one SQLite file with everything a run measured, written as the run goes.

All that is shown later derives from it, without torch. The file is never a pickle, so opening a
record from a stranger runs no code.

Format history (``SCHEMA``):

1. First version: tables ``fact``, ``mode``, ``turn``, ``step``, ``reading``, ``sample``.
"""

from anomprof.record.entries import (
    QUANTITIES,
    OpRow,
    Quantity,
    Reading,
    Record,
    Sample,
    Site,
    Step,
    Turn,
)
from anomprof.record.reader import FILE_NAME, SCHEMA, load
from anomprof.record.writer import SUPERSEDED, RecordWriter

__all__ = [
    "FILE_NAME",
    "QUANTITIES",
    "SCHEMA",
    "SUPERSEDED",
    "OpRow",
    "Quantity",
    "Reading",
    "Record",
    "RecordWriter",
    "Sample",
    "Site",
    "Step",
    "Turn",
    "load",
]
