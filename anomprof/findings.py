"""What a watched run found: findings, notes and ``findings.json``, which holds them. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

#: Version of the file's format. History: 1, the first.
SCHEMA = "anomprof.findings/1"
FILE_NAME = "findings.json"

#: Kinds of findings as people write them.
KIND_NAMES = {"nan": "NaN", "inf": "Inf", "error": "autograd error"}


@dataclass(frozen=True)
class TensorSummary:
    """What one tensor held.

    Attributes:
        shape: Sizes; empty for a single number.
        dtype: Name without ``torch.``.
        min: Smallest value that is a number (infinities count); None where there is none or it was not read,
            NaN where nothing but that there is a NaN was read.
        max: Largest, likewise.
        nan: How many elements are NaN; None where they were not counted.
        inf: How many are +Inf or -Inf; None where they were not counted.
    """

    shape: tuple[int, ...]
    dtype: str
    min: float | None = None
    max: float | None = None
    nan: int | None = None
    inf: int | None = None


@dataclass(frozen=True)
class Frame:
    """One place in source code.

    Attributes:
        file: Relative to the working directory of the run where it lies below it, else absolute.
        code: The source line without indentation; empty where it cannot be read.
    """

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Link:
    """One op between the origin and where the bad value was noticed."""

    op: str
    phase: str
    module: str
    file: str
    line: int
    code: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Advice:
    """Why it happens and what to do about it."""

    cause: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """The origin of one harmful bad value, or of an error that autograd raised.

    Attributes:
        kind: ``nan``, ``inf`` (what the first bad value is) or ``error`` (autograd raised).
        phase: ``forward``, ``backward``, ``optimizer``, ``input`` or ``parameter``.
        step: The user's training step, counted from 0.
        rank: Of a distributed run; 0 elsewhere.
        op: The forward op; for backward faults the op that made the guilty node.
        node: Autograd node, for backward faults.
        backward_op: What ran in backward when the value appeared.
        module: Qualified name below the root module; a root's own forward: its class name; "" outside
            every module.
        file, line, function, code: The line to look at (see :class:`Frame`).
        confidence: ``exact``; ``module`` where only the neighbourhood is sure; ``unknown``.
        inputs: What went into the op.
        outputs: What came out.
        callers: The user's frames that led to the line, innermost first, without the line itself.
        chain: Origin first, symptom last.
        symptom: Where the harm was noticed: "loss", "gradient of lin.weight", "parameter 0.bias".
        message: What else there is to say, in full sentences: autograd's own words for errors.
        occurrences: In how many steps this origin was harmful while the run was watched.
        last_step: The last of them.
        reproducibility: Of a step that was done again: ``deterministic``, ``not deterministic`` or
            ``not checked``; "" where every op was watched as it ran.
    """

    kind: str
    phase: str
    step: int
    rank: int
    op: str
    node: str | None
    backward_op: str | None
    module: str
    file: str
    line: int
    function: str
    code: str
    confidence: str
    inputs: tuple[TensorSummary, ...]
    outputs: tuple[TensorSummary, ...]
    callers: tuple[Frame, ...]
    chain: tuple[Link, ...]
    symptom: str
    advice: Advice
    message: str = ""
    occurrences: int = 1
    last_step: int | None = None
    reproducibility: str = ""


@dataclass(frozen=True)
class Note:
    """Something worth knowing that harmed nothing.

    Attributes:
        what: One sentence.
        step: When first; None for the run as a whole.
        times: How often.
    """

    what: str
    step: int | None = None
    times: int = 1


@dataclass(frozen=True)
class Findings:
    """All that one run found.

    Attributes:
        steps: Training steps that were watched.
        facts: About the run: command, script, versions, what could not be looked at.
    """

    steps: int
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """``clean``, ``anomaly``, or ``error`` where nothing but errors of autograd were found."""
        if not self.findings:
            return "clean"
        return "error" if all(finding.kind == "error" for finding in self.findings) else "anomaly"

    def to_json(self) -> bytes:
        """Returns the content of ``findings.json``; values that are no numbers become strings."""
        content = {"schema": SCHEMA, "verdict": self.verdict, **asdict(self)}
        return orjson.dumps(_plain(content), option=orjson.OPT_INDENT_2)

    @classmethod
    def from_json(cls, content: bytes) -> Findings:
        """Reads what :meth:`to_json` wrote.

        Raises:
            ValueError: It is something else.
        """
        raw = orjson.loads(content)
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise ValueError(f"not a file of {SCHEMA}")
        return cls(
            steps=raw["steps"],
            findings=tuple(_finding(entry) for entry in raw["findings"]),
            notes=tuple(Note(**entry) for entry in raw["notes"]),
            facts=raw["facts"],
        )

    @classmethod
    def load(cls, folder: Path) -> Findings:
        """Reads ``findings.json`` of a folder."""
        return cls.from_json((folder / FILE_NAME).read_bytes())


def _finding(raw: Mapping[str, Any]) -> Finding:
    values = dict(raw)
    values["callers"] = tuple(Frame(**entry) for entry in raw["callers"])
    values["chain"] = tuple(Link(**entry) for entry in raw["chain"])
    for key in ("inputs", "outputs"):
        values[key] = tuple(_summary(entry) for entry in raw[key])
    values["advice"] = Advice(values["advice"]["cause"], tuple(values["advice"]["remedies"]))
    return Finding(**values)


def _summary(raw: Mapping[str, Any]) -> TensorSummary:
    values = dict(raw, shape=tuple(raw["shape"]))
    for key in ("min", "max"):
        if isinstance(values[key], str):
            values[key] = float(values[key])
    return TensorSummary(**values)


def _plain(value: Any) -> Any:
    """Spells NaN and infinities as strings: JSON has no numbers for them."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value).encode("utf-8", "backslashreplace").decode()
