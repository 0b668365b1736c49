"""A few lines of a source file around the one that a finding names, if they can still be read."""

from __future__ import annotations

import tokenize
from pathlib import Path

from anomprof.findings import Finding
from anomprof.report import finding_words as words
from anomprof.report.page import Excerpt, SourceLine

_AROUND = 4
_LONGEST_LINE = 300
_LARGEST_FILE = 5_000_000  # bytes; source is smaller, and the report must not hang on something else


def excerpt(finding: Finding, directory: Path) -> Excerpt | None:
    """Returns the lines around a finding's line, or that line alone; None where even that is not known.

    Relative paths are meant from ``directory``, the working directory of the run.
    """
    place = words.place(finding)
    around = _around(finding, directory / finding.file) if finding.file else []
    if around:
        return Excerpt(f"{place}{_within(finding)}.", tuple(around))
    if not finding.code.strip():
        return None
    alone = _line(finding.line, finding.code.strip(), finding)
    return Excerpt(f"{place}{_within(finding)}; the lines around it could not be read.", (alone,))


def _around(finding: Finding, path: Path) -> list[SourceLine]:
    """Returns nothing where the file is not what it was in the run."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return []
        with tokenize.open(path) as file:
            source = file.read().splitlines()
    except (OSError, SyntaxError, ValueError):  # gone, not readable, or not text
        return []
    if not 1 <= finding.line <= len(source) or source[finding.line - 1].strip() != finding.code.strip():
        return []
    first = max(1, finding.line - _AROUND)
    shown = [line.expandtabs(4).rstrip() for line in source[first - 1 : finding.line + _AROUND]]
    indent = min((len(line) - len(line.lstrip()) for line in shown if line), default=0)
    return [_line(first + index, line[indent:], finding) for index, line in enumerate(shown)]


def _line(number: int, text: str, finding: Finding) -> SourceLine:
    text = "".join(c if c.isprintable() else " " for c in text)
    if len(text) > _LONGEST_LINE:
        text = text[: _LONGEST_LINE - 3] + "..."
    if number != finding.line:
        return SourceLine(number, text)
    indent = len(text) - len(text.lstrip())
    start, length = words.mark(finding)
    start += indent
    return SourceLine(number, text[:start], text[start : start + length], text[start + length :], True)


def _within(finding: Finding) -> str:
    return f", in {finding.function}()" if finding.function.isidentifier() else ""
