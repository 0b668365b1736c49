"""The page as Markdown. Plots stay in the HTML page."""

from __future__ import annotations

import re

from tabulate import tabulate

from anomprof.report.page import (
    Excerpt,
    Folded,
    Heading,
    Page,
    Part,
    Points,
    Remedies,
    Route,
    Section,
    Table,
)
from anomprof.report.prose import pieces

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


def code(words: str) -> str:
    """Returns text as a piece of code within a sentence."""
    words = " ".join(words.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def _section(section: Section) -> list[str]:
    blocks = _blocks(section.parts)
    return [f"## {escape(section.title)}", *blocks] if blocks else []


def _blocks(parts: tuple[Part, ...]) -> list[str]:
    return [block for part in parts if (block := _part(part))]


def _part(part: Part) -> str:
    match part:
        case str():
            return escape(part)
        case Points():
            return _points(part.items)
        case Table():
            return _table(part)
        case Excerpt():
            return _excerpt(part)
        case Route():
            return _route(part)
        case Remedies():
            return _remedies(part)
        case Heading():
            return f"### {escape(part.text)}"
        case Folded():
            return "\n\n".join([f"### {escape(part.title)}", *_blocks(part.parts)])
    return ""  # plots


def _excerpt(excerpt: Excerpt) -> str:
    lines = [
        f"{'>' if line.is_origin else ' '} {line.number:>5} | {line.before}{line.marked}{line.after}".rstrip()
        for line in excerpt.lines
    ]
    # A fence longer than any within: nothing in the source can end the block.
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return "\n".join([f"{escape(excerpt.caption)}\n", f"{fence}text", *lines, fence])


def _route(route: Route) -> str:
    lines = []
    for number, station in enumerate(route.stations, 1):
        words = f"**{escape(station.title)}**" if station.mark != "gap" else escape(station.title)
        words += f" ({escape(station.badge)})" if station.badge else ""
        words += f", {escape(station.detail)}" if station.detail else ""
        words += f": {code(station.code)}" if station.code else ""
        lines.append(f"{number}. {words}")
    return "\n".join([f"{escape(route.caption)}\n", *lines])


def _remedies(remedies: Remedies) -> str:
    return "\n".join([_prose(remedies.cause), "", *(f"- {_prose(item)}" for item in remedies.items)]).strip()


def _prose(words: str) -> str:
    return "".join(code(part) if is_code else _spaced(part) for part, is_code in pieces(words))


def _spaced(words: str) -> str:
    """Returns escaped text with the spaces at its ends, which belong between it and code."""
    before, after = words[: len(words) - len(words.lstrip())], words[len(words.rstrip()) :]
    return f"{' ' if before else ''}{escape(words)}{' ' if after and words.strip() else ''}"


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
