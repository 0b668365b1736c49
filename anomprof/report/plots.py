"""The plots as inline SVG. Without pyplot: no global state, no window system, a faster start."""

from __future__ import annotations

import io
import math
import re
import statistics
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from anomprof.record import Record
from anomprof.report import units
from anomprof.report.mode_rows import is_result
from anomprof.report.page import Page, Plot
from anomprof.results import BASELINE, ModeResult, Results
from anomprof.stats import MARGIN, Interval

# Okabe and Ito's colours, which colour-blind readers can tell apart; the shape says it again.
_LOOKS = {
    "slower": ("#d55e00", ">"),
    "faster": ("#0072b2", "<"),
    "no difference": ("#009e73", "s"),
    "not resolved": ("#666666", "o"),
}
_GREY = "#b0b0b0"
_INK = "#222222"
_POINT = "#0072b2"

# Beyond this a linear axis would squeeze the small ratios together.
_LOG_BEYOND = 2.5
# More points than this cannot be told apart in one panel, and each costs 60 bytes.
_MOST_POINTS = 150

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, sharp, searchable
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib; only for measuring the text
    "font.size": 9.0,
    "text.parse_math": False,  # a "$" in a name is a "$"
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.axisbelow": True,
    "path.simplify": True,
}
_WIDTH_INCHES = 8.0
_LONGEST_NAME = 30

# Seconds since the first step, and the step's own seconds.
_Points = list[tuple[float, float]]


def draw_all(page: Page, results: Results, record: Record) -> dict[str, str]:
    """Returns every plot for which the page has a place, by its name."""
    return {
        part.name: draw(part.name, results, record, part.description)
        for section in page.sections
        for part in section.parts
        if isinstance(part, Plot)
    }


def draw(name: str, results: Results, record: Record, description: str) -> str:
    """Returns the plot ``slowdowns`` or ``steps`` as an ``<svg>`` element."""
    # Whatever the user set for their own plots must not change ours.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        matplotlib.rcParams["svg.hashsalt"] = name  # same record, same file; no id used twice in a page
        figure = _slowdowns(results) if name == "slowdowns" else _steps(record, results)
        return _as_svg(figure, description)


def _slowdowns(results: Results) -> Figure:
    modes = [mode for mode in results.modes if is_result(mode, results)]
    figure = Figure(figsize=(_WIDTH_INCHES, 0.75 + 0.3 * len(modes)))
    # The room at the sides is for names and numbers, in figure fractions.
    longest = max(len(_short(mode.name)) for mode in modes)
    left = 0.03 + 0.011 * longest
    below = 0.5 / figure.get_figheight()
    axes = figure.add_axes((left, below, 0.79 - left, 1 - below - 0.03))
    axes.axvspan(1 - MARGIN, 1 + MARGIN, color="#e4e4e4", linewidth=0)
    axes.axvline(1, color="#888888", linewidth=1)
    for place, mode in enumerate(modes):
        _draw_interval(axes, place, mode)
    axes.set_ylim(len(modes) - 0.4, -0.6)
    axes.set_yticks(range(len(modes)), [_short(mode.name) for mode in modes])
    axes.tick_params(axis="y", length=0, labelcolor=_INK)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("step time in multiples of the baseline's")
    _scale_of_ratios(axes, [mode.slowdown for mode in modes if mode.slowdown])
    return figure


def _draw_interval(axes: Axes, place: int, mode: ModeResult) -> None:
    assert mode.slowdown is not None
    colour, shape = _LOOKS[mode.verdict or "not resolved"]
    interval = mode.slowdown
    if interval.n > 1:
        ends = [interval.low, interval.high]
        axes.plot(ends, [place, place], color=colour, linewidth=1.5, marker="|", markersize=9)
    axes.plot([interval.estimate], [place], marker=shape, color=colour, markersize=6)
    axes.annotate(
        units.ratio(interval),
        (1, place),
        xycoords=("axes fraction", "data"),
        xytext=(10, 0),
        textcoords="offset points",
        verticalalignment="center",
        color=_INK,
        annotation_clip=False,
    )


def _scale_of_ratios(axes: Axes, intervals: Sequence[Interval]) -> None:
    # An interval that says nothing runs off the picture instead of pressing all others together.
    ends = [
        end
        for interval in intervals
        for end in (
            interval.estimate,
            *(() if units.says_nothing(interval) else (interval.low, interval.high)),
        )
    ]
    low, high = min(*ends, 1 - MARGIN), max(*ends, 1 + MARGIN)
    if max(i.estimate for i in intervals) > _LOG_BEYOND:
        axes.set_xscale("log")
        room = (high / low) ** 0.06
        axes.set_xlim(low / room, high * room)
        _log_ticks(axes.xaxis, low / room, high * room)
    else:
        room = (high - low) * 0.06
        axes.set_xlim(low - room, high + room)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))


def _log_ticks(axis: matplotlib.axis.Axis, low: float, high: float) -> None:
    """Sets ticks such as 1, 1.5, 2, 3, 5, 10: few enough to read, at least two."""
    for steps in (
        (1.0, 10.0),
        (1.0, 3.0),
        (1.0, 2.0, 5.0),
        (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
        tuple(range(10, 100, 2)),
    ):
        decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
        ticks = sorted({float(f"{step * 10.0**decade:.3g}") for decade in decades for step in steps})
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            break
    axis.set_ticks(ticks[:: math.ceil(len(ticks) / 9)] if ticks else [low, high])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _steps(record: Record, results: Results) -> Figure:
    """Small multiples: one panel per mode, since ten colours in one panel could not be told apart."""
    begin = min(step.started for turn in record.turns for step in turn.steps)
    points = {mode.name: _points(record, mode.name, begin) for mode in results.modes}
    points = {name: some for name, some in points.items() if some}
    columns = 2 if len(points) > 1 else 1
    rows = math.ceil(len(points) / columns)
    height = 0.8 + 1.2 * rows
    figure = Figure(figsize=(_WIDTH_INCHES, height))
    # Fixed places: matplotlib's automatic layout would double the time that the plot takes.
    places = {"left": 0.12, "right": 0.99, "bottom": 0.55 / height, "top": 1 - 0.25 / height}
    gaps = {"hspace": 0.5, "wspace": 0.24}
    panels = list(figure.subplots(rows, columns, sharex=True, squeeze=False, gridspec_kw=places | gaps).flat)
    for axes, (name, some) in zip(panels, points.items(), strict=False):
        _draw_steps(axes, name, some, points.get(BASELINE, []))
    panels[0].xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))  # shared by all
    for axes in panels[len(points) :]:
        axes.remove()
    if len(points) % columns:  # the panel above the empty place needs its own numbers below
        panels[len(points) - columns].tick_params(labelbottom=True)
    figure.text(0.555, 0.12 / height, "seconds since the first step", horizontalalignment="center")
    figure.text(0.01, 0.5, "step time", rotation="vertical", verticalalignment="center")
    return figure


def _draw_steps(axes: Axes, name: str, points: _Points, baseline: _Points) -> None:
    """Draws one mode's steps; its own scale shows its noise, the baseline behind it how far away it is."""
    if name != BASELINE and baseline:
        axes.plot(*zip(*baseline, strict=True), ".", color=_GREY, markersize=4)
    colour = "#777777" if name == BASELINE else _POINT
    axes.plot(*zip(*points, strict=True), "." if len(points) > 60 else "o", color=colour, markersize=3.5)
    axes.set_title(_short(name), loc="left", fontsize=9, color=_INK, pad=3)
    times = [seconds for _, seconds in [*points, *baseline]]
    low, high = min(times), max(times)
    if high / low > _LOG_BEYOND:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.2, high * 1.2)
        _log_ticks(axes.yaxis, low / 1.2, high * 1.2)
    else:
        room = max(0.1 * (high - low), 0.02 * high)
        axes.set_ylim(low - room, high + room)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.tick_seconds(value)))
    axes.grid(axis="y", color="#eeeeee")
    axes.tick_params(labelsize=8)


def _points(record: Record, mode: str, begin: float) -> _Points:
    steps = [step for turn in record.turns if turn.mode == mode for step in turn.steps]
    steps.sort(key=lambda step: step.started)
    size = max(1, math.ceil(len(steps) / _MOST_POINTS))
    groups = [steps[first : first + size] for first in range(0, len(steps), size)]
    return [
        (
            statistics.median(step.started for step in group) - begin,
            statistics.median(step.step_seconds for step in group),
        )
        for group in groups
    ]


def _short(name: str) -> str:
    """Returns a name that leaves room for the plot."""
    name = units.one_line(name)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _as_svg(figure: Figure, description: str) -> str:
    """Returns the figure as an element that a page can hold: no prolog, no date, no group ids."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure)
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # Ids such as "axes_1" come in every figure and nothing refers to them.
    svg = re.sub(r'<g id="[\w.]+">', "<g>", svg)
    label = description.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
