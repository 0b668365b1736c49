"""Findings as plain text for a terminal: at once what happened, where, and what to do."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from anomprof.findings import Finding, Findings
from anomprof.report import finding_words as words
from anomprof.report import prose, units

WIDTH = 100
_NARROWEST = 60
_HEIGHT, _HEIGHT_NARROW = 14, 18
_BOLD_RED, _DIM, _PLAIN = "\x1b[1;31m", "\x1b[2m", "\x1b[0m"
_LABEL = 8  # columns before the text
_FEWEST_TENSORS = 2
_MOST_LINKS = 8
_MOST_FINDINGS = 10
_MOST_NOTES = 8


def announce(finding: Finding, *, colour: bool = False, width: int = WIDTH) -> str:
    """Returns a finding as text for a terminal, without a line end.

    At most 14 lines of 100 columns, or 18 lines of a narrower terminal's columns (60 at least). With
    ``colour`` it holds ANSI escapes; whatever else a name or a source line contains is shown as text.
    """
    sheet = _Sheet.of(width)
    top = [
        *_headline(finding, sheet),
        *_source(finding, sheet),
        *sheet.labelled("what", words.circumstances(finding), most=2),
    ]
    story = [
        *_path(finding, sheet),
        *sheet.labelled("said", units.one_line(finding.message), most=3 if finding.kind == "error" else 1),
        *sheet.labelled("why", _plain(finding.advice.cause), most=3),
    ]
    remedies = [_plain(remedy) for remedy in finding.advice.remedies]
    # The second best only where it is short: half a piece of code helps nobody.
    seconds = [remedy for remedy in remedies[1:] if cell_len(remedy) <= sheet.room]
    advice = [
        *sheet.labelled("try", remedies[0] if remedies else "", most=2 if sheet.width == WIDTH else 3),
        *sheet.labelled("try", seconds[0] if seconds else ""),
    ]
    told = min(len(remedies), 2 if seconds else 1)
    room = sheet.height - len(top + story + advice)
    if room < _FEWEST_TENSORS and seconds:
        advice, room, told = advice[:-1], room + 1, 1
    more = f"  ({len(remedies) - told} more in the report)"
    if advice and told < len(remedies) and cell_len(advice[-1] + more) <= sheet.width:
        advice[-1] += more
    lines = [*top, *_tensors(finding, max(room, 1), sheet), *story, *advice][: sheet.height]
    return "\n".join(_coloured(lines) if colour else lines)


def summary(findings: Findings, *, width: int = WIDTH) -> str:
    """Returns the end of a watched run as text for a terminal, the verdict first, without a line end."""
    sheet = _Sheet.of(width)
    lines = [sheet.cut(f"anomprof: {words.verdict(findings)}")]
    shown = findings.findings[:_MOST_FINDINGS]
    for number, finding in enumerate(shown, 1):
        lines += sheet.labelled(str(number), words.headline(finding, ""), most=2)
    lines += sheet.more(len(findings.findings) - len(shown), "findings")
    for note in findings.notes[:_MOST_NOTES]:
        lines += sheet.labelled("note", words.note(note), most=3)
    lines += sheet.more(len(findings.notes) - _MOST_NOTES, "notes")
    for entry in words.unwatched(findings):
        lines += sheet.labelled("unseen", entry, most=2)
    return "\n".join(lines)


@dataclass(frozen=True)
class _Sheet:
    """The space that a text has.

    Attributes:
        width: In columns.
        height: In lines.
    """

    width: int
    height: int

    @classmethod
    def of(cls, width: int) -> _Sheet:
        """Returns the sheet for a terminal of so many columns."""
        width = min(max(width, _NARROWEST), WIDTH)
        return cls(width, _HEIGHT if width == WIDTH else _HEIGHT_NARROW)

    @property
    def room(self) -> int:
        """Columns beside a label."""
        return self.width - _LABEL

    def labelled(self, label: str, text: str, most: int = 1) -> list[str]:
        """Returns lines of text beside a label; nothing where there is no text."""
        if not text.strip():
            return []
        if most == 1:
            lines = [self.cut(text.rstrip(), self.room)]
        else:
            lines = textwrap.wrap(text, self.room, max_lines=most, placeholder=" ...", break_on_hyphens=False)
        labels = (f"  {label:<{_LABEL - 3}} ", *[" " * _LABEL] * most)
        return [before + line for before, line in zip(labels, lines, strict=False)]

    def more(self, count: int, what: str) -> list[str]:
        """Says how many were left out."""
        return self.labelled("...", f"{count} more {what} in the report") if count > 0 else []

    def cut(self, text: str, room: int | None = None) -> str:
        """Returns text that takes at most so many columns."""
        room = self.width if room is None else room
        return text if cell_len(text) <= room else set_cell_size(text, room - 3).rstrip() + "..."


def _coloured(lines: list[str]) -> list[str]:
    """Returns the lines with the headline and the mark in red, and the labels dimmed."""
    shown = [f"{_BOLD_RED}{lines[0]}{_PLAIN}"]
    for line in lines[1:]:
        label, text = line[:_LABEL], line[_LABEL:]
        looks = _BOLD_RED if set(text.strip()) == {"^"} else ""
        shown.append(f"{_DIM}{label}{_PLAIN}{looks}{text}{_PLAIN if looks else ''}")
    return shown


def _plain(words: str) -> str:
    return units.one_line(prose.plain(words))


def _headline(finding: Finding, sheet: _Sheet) -> list[str]:
    """Returns the headline; the place, which must stay whole, on its own line where it is long."""
    line = f"anomprof: {words.headline(finding)}"
    if cell_len(line) <= sheet.width:
        return [line]
    *parts, place = words.identity(finding)
    return [
        sheet.cut(f"anomprof: first {words.kind(finding)}: {', '.join(parts)}"),
        *sheet.labelled("at", place if cell_len(place) <= sheet.room else words.short_place(finding)),
    ]


def _source(finding: Finding, sheet: _Sheet) -> list[str]:
    """Returns the source line and, below it, a mark under what to look at."""
    if not finding.code.strip():
        return []
    gutter = f"{finding.line:>{_LABEL - 3}} | "
    room = sheet.width - len(gutter)
    start, length = words.mark(finding)
    before, marked, after = (
        "".join(c if c.isprintable() else " " for c in part)
        for part in (
            finding.code[:start],
            finding.code[start : start + length],
            finding.code[start + length :],
        )
    )
    if start + length > room:  # the mark must stay in sight
        before = "..." + before[-(room // 3) :]
    offset = cell_len(before)
    underline = "^" * max(1, min(cell_len(marked), room - offset))
    return [gutter + sheet.cut(before + marked + after, room), " " * (len(gutter) + offset) + underline]


def _tensors(finding: Finding, most: int, sheet: _Sheet) -> list[str]:
    """Returns what went in and came out, in columns; what came out is kept where there is too much."""
    rows = words.tensor_rows(finding)
    left_out = max(0, len(rows) - most)
    if left_out:
        outputs = rows[len(finding.inputs) :][: max(1, most // 2)]
        rows = [*rows[: len(finding.inputs)][: most - len(outputs)], *outputs]
        left_out = len(finding.inputs) + len(finding.outputs) - len(rows)
    widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = []
    for index, (label, *cells) in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, (*widths[1:], 0), strict=True))
        if left_out and index == len(rows) - 1:
            text = f"{text.rstrip()}  (and {left_out} more)"
        lines += sheet.labelled(label, text)
    return lines


def _path(finding: Finding, sheet: _Sheet) -> list[str]:
    """Returns the way from origin to symptom, with as many links as two lines hold, two at least."""
    lines: list[str] = []
    for most in range(_MOST_LINKS, 1, -1):
        lines = sheet.labelled("path", " -> ".join(words.route(finding, most)), most=3)
        if len(lines) <= 2:
            break
    return lines if len(finding.chain) > 1 else []
