"""A finding in words and rows of text, which terminal, HTML and Markdown share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from anomprof.advice.case import number
from anomprof.findings import KIND_NAMES, Finding, Findings, Link, Note, TensorSummary
from anomprof.report import units

_PHASES = {
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "optimizer": "in the update",
    "input": "in the input",
    "parameter": "in a parameter before the first step",
}
_DOUBTS = {
    "exact": "",
    "module": "the module is sure, the line is not",
    "unknown": "the line is not certain",
}
#: What an op looks like in source code where that is not its name.
_SIGNS = {"div": "/", "mul": "*", "add": "+", "sub": "-", "pow": "**", "mm": "@", "bmm": "@", "matmul": "@"}


def kind(finding: Finding) -> str:
    """Returns ``NaN``, ``Inf`` or ``autograd error``."""
    return KIND_NAMES.get(finding.kind, units.one_line(finding.kind))


def place(finding: Finding) -> str:
    """Returns ``train.py:24``, or says that there is no line."""
    return f"{units.one_line(finding.file)}:{finding.line}" if finding.file else "no source line known"


def short_place(finding: Finding | Link) -> str:
    """Returns the place with the file's name alone."""
    return f"{PurePath(units.one_line(finding.file)).name}:{finding.line}" if finding.file else ""


def identity(finding: Finding) -> list[str]:
    """Returns step, rank, phase, module, op and, last, the place."""
    rank = f"rank {finding.rank}" if finding.rank else ""
    parts = (f"step {finding.step}", rank, finding.phase, finding.module, finding.op)
    return [*(units.one_line(part) for part in parts if part), place(finding)]


def headline(finding: Finding, rank: str = "first ") -> str:
    """Returns a line such as ``first NaN: step 41, forward, blocks.3.attn, aten::_softmax, train.py:88``."""
    return f"{rank}{kind(finding)}: {', '.join(identity(finding))}"


def capital(words: str) -> str:
    """Returns a sentence with a large first letter; words such as ``aten::add`` are left alone."""
    return words[:1].upper() + words[1:]


def sentence(finding: Finding) -> str:
    """Returns the finding as one sentence."""
    where = f"step {finding.step}, {_PHASES.get(finding.phase, units.one_line(finding.phase))}"
    if finding.rank:
        where += f" of rank {finding.rank}"
    if finding.kind == "error":
        return f"Autograd raised an error; {origin_words(finding)} is where it began ({where})."
    harmed = f", and reached the {units.one_line(finding.symptom)}" if finding.symptom else ""
    return f"The first {kind(finding)} came from {origin_words(finding)} in {where}{harmed}."


def origin_words(finding: Finding) -> str:
    """Returns ``aten::sqrt of energy at train.py:24``."""
    of = f" of {units.one_line(finding.module)}" if finding.module else ""
    at = f" at {place(finding)}" if finding.file else ""
    return f"{units.one_line(finding.op) or 'an op'}{of}{at}"


def doubt(finding: Finding) -> str:
    """Returns how sure the line is; nothing where it is exact."""
    return _DOUBTS.get(finding.confidence, units.one_line(finding.confidence))


def circumstances(finding: Finding) -> str:
    """Returns what the headline leaves out: function, autograd node, how often, how sure."""
    parts = [
        f"in {units.one_line(finding.function)}()" if finding.function.isidentifier() else "",
        _engine(finding),
        harm(finding),
        recurrence(finding),
        doubt(finding),
    ]
    return "; ".join(part for part in parts if part)


def _engine(finding: Finding) -> str:
    """Returns which autograd node it was, and which op ran there."""
    if not finding.node:
        return f"by {units.one_line(finding.backward_op)}" if finding.backward_op else ""
    if finding.kind == "error":
        return f"{units.one_line(finding.node)} needs the old value"
    ran = f", when {units.one_line(finding.backward_op)} ran in it" if finding.backward_op else ""
    return f"by its backward, {units.one_line(finding.node)}{ran}"


def harm(finding: Finding) -> str:
    """Returns what was harmed; nothing where it is the error itself that one sees."""
    is_named = bool(finding.symptom) and finding.kind != "error"
    return f"harmed the {units.one_line(finding.symptom)}" if is_named else ""


def recurrence(finding: Finding) -> str:
    """Returns in how many steps it was seen; nothing for one."""
    if finding.occurrences < 2:
        return ""
    last = f", last in step {finding.last_step}" if finding.last_step is not None else ""
    return f"harmful in {units.count(finding.occurrences)} steps{last}"


def mark(finding: Finding) -> tuple[int, int]:
    """Returns start and length of what to underline in the source line."""
    code = finding.code
    name = re.sub(r"^_foreach_|^linalg_", "", finding.op.rpartition("::")[2].partition(".")[0]).strip("_")
    found = [*re.finditer(rf"(?<!\w){re.escape(name)}_?(?=\()", code)] if name else []
    if not found and name in _SIGNS:
        sign = re.escape(_SIGNS[name])
        found = [*re.finditer(rf"(?<![*/]){sign}=?(?![*/])", code)]
    if len(found) == 1:
        return found[0].start(), len(found[0][0])
    return 0, len(code)


def tensor_rows(finding: Finding) -> list[tuple[str, ...]]:
    """Returns which, dtype, shape, range and bad elements of everything that went in and came out."""
    rows: list[tuple[str, ...]] = []
    for name, summaries in (("in", finding.inputs), ("out", finding.outputs)):
        for index, summary in enumerate(summaries):
            label = f"{name} {index}" if len(summaries) > 1 else name
            rows.append(
                (label, units.one_line(summary.dtype), _shape(summary), _range(summary), _bad(summary))
            )
    return rows


def route(finding: Finding, most: int) -> list[str]:
    """Returns the stations from origin to symptom in words; module and line where they change."""
    stations = []
    before: Link | None = None
    for part in abridged(finding.chain, most):
        if isinstance(part, int):
            stations.append(f"{part} more")
            before = None
            continue
        words = units.one_line(part.op) or "?"
        if part.module and (before is None or part.module != before.module):
            words += f" in {units.one_line(part.module)}"
        if part.file and (before is None or (part.file, part.line) != (before.file, before.line)):
            words += f" ({short_place(part)})"
        stations.append(words)
        before = part
    return [*stations, units.one_line(finding.symptom)] if finding.symptom else stations


def note(note: Note) -> str:
    """Returns a note with its step and how often it was seen."""
    parts = [f"step {note.step}"] if note.step is not None else []
    if note.times > 1:
        parts.append(f"{units.count(note.times)} times")
    return units.one_line(note.what) + (f" ({', '.join(parts)})" if parts else "")


def abridged(chain: Sequence[Link], most: int) -> list[Link | int]:
    """Returns the links, the middle ones replaced by their number where there are more than ``most``."""
    if len(chain) <= most:
        return list(chain)
    first = (most + 1) // 2
    last = most - first
    return [*chain[:first], len(chain) - most, *(chain[-last:] if last else ())]


def verdict(findings: Findings) -> str:
    """Returns the verdict on the whole run in one sentence."""
    watched = steps(findings)
    if not findings.findings:
        if not findings.steps:
            return _nothing_seen(findings)
        count = len(findings.notes)
        also = f" ({count} note{'s' if count > 1 else ''})" if count else ""
        return f"clean: {watched} watched, nothing bad reached a loss, gradient or parameter{also}"
    count = len(findings.findings)
    what = "autograd error" if findings.verdict == "error" else "finding"
    return f"{units.count(count)} {what}{'s' if count > 1 else ''} in {watched} (counted from 0)"


def _nothing_seen(findings: Findings) -> str:
    if findings.facts.get("torch_was_imported") is False:
        return "the script ended before it imported torch, so there was nothing to watch"
    return "no optimizer step and no backward was seen, so nothing can be said"


def steps(findings: Findings) -> str:
    """Returns ``1 step`` or ``40 steps``."""
    return "1 step" if findings.steps == 1 else f"{units.count(findings.steps)} steps"


def unwatched(findings: Findings) -> tuple[str, ...]:
    """Returns what could not be looked at: the fact ``not_watched``, a list of sentences or one of them."""
    raw = findings.facts.get("not_watched") or ()
    sentences = raw if isinstance(raw, Sequence) and not isinstance(raw, str) else (raw,)
    return tuple(units.text(entry) for entry in sentences)


def _shape(summary: TensorSummary) -> str:
    if not summary.shape:
        return "" if summary.dtype == "number" else "scalar"
    return f"[{', '.join(map(str, summary.shape))}]"


def _range(summary: TensorSummary) -> str:
    if 0 in summary.shape:
        return "empty"
    if summary.min is None or summary.max is None:
        return "no numbers" if summary.nan else "not read"
    if math.isnan(summary.min):
        return "holds NaN"
    if summary.min == summary.max:
        return f"all {number(summary.min)}" if summary.shape else number(summary.min)
    return f"{number(summary.min)} .. {number(summary.max)}"


def _bad(summary: TensorSummary) -> str:
    """Returns ``3 NaN of 80``; nothing where all is finite or nothing was counted."""
    total = math.prod(summary.shape)
    counts = [(summary.nan or 0, "NaN"), (summary.inf or 0, "Inf")]
    words = [
        "all " + word if count == total > 1 else f"{units.count(count)} {word}"
        for count, word in counts
        if count
    ]
    if not words:
        return ""
    among = f" of {units.count(total)}" if total > 1 and not words[0].startswith("all") else ""
    return ", ".join(words) + among
