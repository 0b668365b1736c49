"""What a report consists of, before it becomes HTML or Markdown: text, tables and places for plots."""

from __future__ import annotations

from dataclasses import dataclass


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


Part = str | Table | Points | Plot


@dataclass(frozen=True)
class Section:
    """A titled part of the page; plain strings are paragraphs."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Page:
    """The whole report.

    Attributes:
        headline: The verdict in one sentence; a reader without patience reads only this.
        sentences: One more sentence per mode.
        origin: When, where and with what it was measured, in one line.
    """

    title: str
    headline: str
    sentences: tuple[str, ...]
    origin: str
    sections: tuple[Section, ...]
