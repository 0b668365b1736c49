"""Names that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], limit: int = 1) -> str:
    """Returns ``" (did you mean 'x'?)"``, or nothing where no known name is near."""
    matches = difflib.get_close_matches(name, list(known), n=limit)
    if not matches:
        return ""
    return f" (did you mean {' or '.join(repr(match) for match in matches)}?)"
