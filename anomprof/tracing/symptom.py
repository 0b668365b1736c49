"""Where a bad value was noticed."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Symptom:
    """What was harmed. Its name is looked up only when it is told: that takes a walk over all objects.

    Attributes:
        what: As ``gradient of``; the whole symptom where there is nothing to name.
        thing: The tensor or module to name.
        after: What follows the name.
    """

    what: str
    thing: weakref.ref[Any] | None = None
    after: str = ""

    @classmethod
    def of(cls, what: str, thing: Any, after: str = "") -> Symptom:
        """Makes the symptom of one tensor or module."""
        return cls(what, weakref.ref(thing), after)
