"""The page as one HTML file that needs nothing else: styles and plots inside, everything escaped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from anomprof.report.page import Page, Part
from anomprof.report.prose import pieces

_TEMPLATES = Path(__file__).parent / "templates"


def render(page: Page, plots: Mapping[str, str] | None = None) -> str:
    """Returns the HTML of a page; ``plots`` holds the ``<svg>`` element of each plot by its name."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["part_name"] = _part_name
    environment.filters["pieces"] = pieces
    drawn = {name: Markup(svg) for name, svg in (plots or {}).items()}
    return environment.get_template("page.html").render(page=page, plots=drawn)


def _part_name(part: Part) -> str:
    """Returns the name under which the template knows a kind of part."""
    return type(part).__name__.lower()
