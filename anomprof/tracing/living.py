"""Finds objects of a class among all that are alive."""

from __future__ import annotations

import gc
from typing import TypeVar

T = TypeVar("T")


def living(base: type[T]) -> list[T]:
    """Returns every living instance of a class and its subclasses; takes some ten milliseconds.

    Asks for types, not with isinstance: some objects answer for another class, and do things when asked.
    """
    fits: dict[type, bool] = {}
    found = []
    for thing in gc.get_objects():
        kind = type(thing)
        known = fits.get(kind)
        if known is None:
            known = fits[kind] = issubclass(kind, base)
        if known:
            found.append(thing)
    return found
