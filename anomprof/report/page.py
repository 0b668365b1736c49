"""What a report consists of, before it becomes HTML or Markdown: text, tables and places for plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Column:
    """A table's column; numbers are set flush right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Row:
    """A table's row.

    Attributes:
        mark: What the row should look like (``slower``, ``faster``, ``missing``, ...); the words
            in the cells say the same, for readers without colours.
    """

    cells: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Columns and rows of finished text."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Points:
    """A list of short sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Plot:
    """A place for a plot, for media that can show one.

    Attributes:
        name: One of ``slowdowns`` and ``steps``.
        description: Read aloud by a screen reader in the picture's stead.
    """

    name: str
    description: str
    caption: str


@dataclass(frozen=True)
class SourceLine:
    """One line of an excerpt.

    Attributes:
        before, marked, after: Together the line's text; ``marked`` is what to look at.
        is_origin: Whether the line is the one that the excerpt is about.
    """

    number: int
    before: str
    marked: str = ""
    after: str = ""
    is_origin: bool = False


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source file around the one to look at."""

    caption: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True)
class Station:
    """A stop on a route.

    Attributes:
        title: The op.
        detail: Where it ran.
        code: The source line, or "".
        badge: What it carried: ``NaN``, ``Inf`` or "".
        mark: ``origin``, ``symptom``, ``gap`` (stations were left out) or "".
    """

    title: str
    detail: str = ""
    code: str = ""
    badge: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Route:
    """The way of a bad value, origin first."""

    caption: str
    stations: tuple[Station, ...]


@dataclass(frozen=True)
class Remedies:
    """A cause and what to do about it; code stands between backticks."""

    cause: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Heading:
    """A title within a section."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Parts under a title that a reader opens only if they want to."""

    title: str
    parts: tuple[Part, ...]


Part: TypeAlias = "str | Table | Points | Plot | Excerpt | Route | Remedies | Heading | Folded"


@dataclass(frozen=True)
class Section:
    """A titled part of the page; plain strings are paragraphs.

    Attributes:
        mark: What the section should look like: ``finding``, or "".
    """

    title: str
    parts: tuple[Part, ...]
    mark: str = ""


@dataclass(frozen=True)
class Page:
    """The whole report.

    Attributes:
        headline: The verdict in one sentence; a reader without patience reads only this.
        sentences: What else a reader should know at once.
        origin: When, where and with what it was measured, in one line.
        mark: The verdict as a look: ``clean``, ``anomaly``, ``error`` or "".
    """

    title: str
    headline: str
    sentences: tuple[str, ...]
    origin: str
    sections: tuple[Section, ...]
    mark: str = ""
