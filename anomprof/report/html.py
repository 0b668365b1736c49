"""The page as one HTML file that needs nothing else: styles and plots inside, everything escaped."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from anomprof.record import Record
from anomprof.report.page import Page, Plot, Points, Table
from anomprof.report.plots import draw
from anomprof.results import Results

_TEMPLATES = Path(__file__).parent / "templates"


def render(page: Page, results: Results, record: Record) -> str:
    """Returns the HTML of a page, its plots drawn from results and record."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests.update(
        table=lambda part: isinstance(part, Table),
        points=lambda part: isinstance(part, Points),
        plot=lambda part: isinstance(part, Plot),
    )
    plots = {
        part.name: Markup(draw(part.name, results, record, part.description))
        for section in page.sections
        for part in section.parts
        if isinstance(part, Plot)
    }
    return environment.get_template("bench.html").render(page=page, plots=plots)
