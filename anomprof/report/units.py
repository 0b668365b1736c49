"""How values look to people: units they can read, and no more digits than the interval supports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # statistics take half a second to load, and a watched script needs none
    from anomprof.stats import Interval

# High end over low end; two rounds on a busy machine reach millions.
_WIDEST = 100.0

#: Stands where there is no value; the reason is given beside the table.
NONE = "-"

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def ratio(interval: Interval) -> str:
    """Returns ``1.27 (1.24-1.31)``; with one round only ``1.3`` and the reason."""
    if interval.n < 2:
        return f"{lone_ratio(interval.estimate)} (1 round, no interval)"
    if says_nothing(interval):
        return f"{lone_ratio(interval.estimate)} ({interval.n} rounds, too few)"
    estimate, low, high = _with_interval(interval, fewest=1 if interval.estimate < 10 else 0)
    return f"{estimate} ({span(low, high)})"


def says_nothing(interval: Interval) -> bool:
    """Whether an interval of a ratio is so wide that its ends would only puzzle a reader."""
    return interval.n < 2 or interval.high > _WIDEST * interval.low


def ratio_estimate(interval: Interval) -> str:
    """Returns the estimate of :func:`ratio` alone."""
    return ratio(interval).split(" ", 1)[0]


def ratio_range(interval: Interval) -> str:
    """Returns ``95 % 1.24-1.31``, or says that there is no interval."""
    if interval.n < 2:
        return "1 round, no interval"
    if says_nothing(interval):
        return f"{interval.n} rounds, too few"
    _, low, high = _with_interval(interval, fewest=1 if interval.estimate < 10 else 0)
    return f"95 % {span(low, high)}"


def lone_ratio(value: float) -> str:
    """Returns a ratio that has no interval, with two significant digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def memory_ratio(value: float) -> str:
    """Returns a ratio of two counted (not sampled) memory peaks."""
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share(interval: Interval) -> str:
    """Returns ``0.06 (0.04-0.08)``, a fraction of a baseline step."""
    if interval.n < 2:
        return f"{interval.estimate:.2f} (1 round, no interval)"
    estimate, low, high = _with_interval(interval, fewest=1)
    return f"{estimate} ({span(low, high)})"


def share_estimate(interval: Interval) -> str:
    """Returns the estimate of :func:`share` alone."""
    return share(interval).split(" ", 1)[0]


def seconds_with_interval(interval: Interval) -> str:
    """Returns ``492 ms (488-497)``."""
    size, unit = _unit(interval.estimate, _SECONDS)
    if interval.n < 2:
        return f"{three_digits(interval.estimate / size)} {unit} (1 step)"
    scaled = replace(
        interval, estimate=interval.estimate / size, low=interval.low / size, high=interval.high / size
    )
    # Four significant digits at most: 492.3 ms.
    most = max(0, 3 - math.floor(math.log10(abs(scaled.estimate) or 1)))
    estimate, low, high = _with_interval(scaled, most=most)
    return f"{estimate} {unit} ({span(low, high)})"


def seconds(value: float, *, signed: bool = False) -> str:
    """Returns a duration such as ``3.21 ms``."""
    return _scaled(value, _SECONDS, signed)


def tick_seconds(value: float) -> str:
    """Returns a round duration for an axis, such as ``500 ms``."""
    factor, unit = _unit(value, _SECONDS)
    return f"{value / factor:.5g} {unit}"


def size(value: float, *, signed: bool = False) -> str:
    """Returns an amount of memory such as ``1.02 GiB``."""
    return _scaled(value, _BYTES, signed)


def count(value: float, *, signed: bool = False) -> str:
    """Returns a whole number with thousands separated."""
    return f"{value:+,.0f}" if signed and value else f"{value:,.0f}"


def percent(fraction: float) -> str:
    """Returns a fraction such as 0.345 as ``34 %``."""
    number = f"{fraction * 100:.0f}" if fraction >= 0.095 else f"{fraction * 100:.1f}".removesuffix(".0")
    return f"{number} %"


def three_digits(value: float) -> str:
    """Returns a number with three significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = 2 - math.floor(math.log10(abs(value)))
    if round(abs(value), decimals) >= 10.0 ** (3 - decimals):  # 9.999 is 10.0, not 10.00
        decimals -= 1
    return f"{value:,.{max(0, min(decimals, 12))}f}" if decimals < 7 else f"{value:.2e}"


def span(low: str, high: str) -> str:
    """Returns both ends; a minus sign next to a hyphen would be misread."""
    return f"{low} to {high}" if low.startswith("-") else f"{low}-{high}"


def text(value: Any) -> str:
    """Returns any JSON value as one line."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text(some)}" for key, some in value.items()) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(text(some) for some in value) or "none"
    return one_line(str(value))


def one_line(words: str) -> str:
    """Returns text without line breaks and control characters, which would break tables and terminals."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def _with_interval(interval: Interval, fewest: int = 0, most: int = 3) -> tuple[str, str, str]:
    """Formats all three numbers with the digits that the interval leaves meaning in.

    As is usual for uncertainties: one digit of the half-width, or two where the first would be a 1.
    """
    half = max(interval.high - interval.estimate, interval.estimate - interval.low)
    wanted = math.ceil(-math.log10(half / 2)) if half > 0 else most
    decimals = max(fewest, min(wanted, most))
    # Adding 0.0 turns "-0.00" into "0.00".
    estimate, low, high = (
        f"{round(value, decimals) + 0.0:.{decimals}f}"
        for value in (interval.estimate, interval.low, interval.high)
    )
    return estimate, low, high


def _unit(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    return next((unit for unit in units if abs(value) >= unit[0]), units[-1])


def _scaled(value: float, units: Sequence[tuple[float, str]], signed: bool) -> str:
    if value == 0:
        return "0"
    factor, unit = _unit(value, units)
    number = f"{value / factor:.0f}" if unit == "B" else three_digits(value / factor)
    sign = "+" if signed and value > 0 else ""
    return f"{sign}{number} {unit}"
