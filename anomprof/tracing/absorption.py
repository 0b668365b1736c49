"""Bad values that vanish and still change what is trained: an infinite norm that zeroes an update."""

from __future__ import annotations

from anomprof.tracing.events import Event
from anomprof.tracing.marks import Mark, Marks
from anomprof.tracing.sight import Seen

_LARGEST = 4096  # elements: factors and norms are small, and what they are multiplied with is not marked


def absorb(
    marks: Marks,
    marked: list[tuple[Seen, Mark]],
    written: list[Seen],
    made: list[Seen],
) -> Event | None:
    """Follows a bad value of the optimizer phase through an op whose result is finite.

    Args:
        marks: Where the result is marked.
        marked: The operands with a mark.
        written: Operands that the op wrote.
        made: All that it made or wrote.

    Returns:
        The event whose value has zeroed one of the written tensors, if one has.
    """
    sources = [
        event
        for seen, mark in marked
        if seen not in written
        for event in (mark.absorbed, mark.inf, mark.nan)
        if event is not None and not event.is_all_literal
    ]
    event = min(sources, key=lambda source: source.order, default=None)
    if event is None or event.phase != "optimizer":
        return None
    for seen in made:
        if not seen.is_number:
            continue
        if seen in written and seen.is_zero():
            return event
        if seen.numel <= _LARGEST:
            marks.absorb(seen, event)
    return None
