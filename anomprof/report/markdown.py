"""The page as Markdown. Plots stay in the HTML page."""

from __future__ import annotations

import re

from tabulate import tabulate

from anomprof.report.page import Page, Part, Plot, Points, Section, Table

# What Markdown or the HTML inside it would take for markup. An underscore within a word is harmless,
# and op names are full of them.
_MARKUP = re.compile(r"[\\`*\[\]|]|(?<!\w)_|_(?!\w)")


def render(page: Page) -> str:
    """Returns the Markdown of a page."""
    blocks = [f"# {escape(page.title)}", f"**{escape(page.headline)}**"]
    if page.sentences:
        blocks.append(_points(page.sentences))
    blocks.append(escape(page.origin))
    for section in page.sections:
        blocks += _section(section)
    return "\n\n".join(blocks) + "\n"


def escape(words: str) -> str:
    """Returns text that Markdown shows as it stands, also inside a table's cell."""
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda match: "\\" + match[0], " ".join(words.split()))


def _section(section: Section) -> list[str]:
    blocks = [block for part in section.parts if (block := _part(part))]
    return [f"## {escape(section.title)}", *blocks] if blocks else []


def _part(part: Part) -> str:
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, Points):
        return _points(part.items)
    if isinstance(part, Plot):
        return ""
    return _table(part)


def _points(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {escape(item)}" for item in items)


def _table(table: Table) -> str:
    grid = tabulate(
        [[escape(cell) for cell in row.cells] for row in table.rows],
        headers=[escape(column.title) for column in table.columns],
        tablefmt="pipe",
        colalign=["right" if column.is_number else "left" for column in table.columns],
        disable_numparse=True,
    )
    return f"{escape(table.caption)}\n\n{grid}"
