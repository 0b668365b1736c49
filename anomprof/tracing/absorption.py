"""Bad values that vanish and still change what is trained: an infinite norm that zeroes an update."""

from __future__ import annotations

import torch

from anomprof.tracing.events import Event, Mark, Marks

_LARGEST = 4096  # elements: factors and norms are small, and what they are multiplied with is not marked


def absorb(
    marks: Marks,
    marked: list[tuple[torch.Tensor, Mark]],
    written: list[torch.Tensor],
    made: list[torch.Tensor],
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
        for tensor, mark in marked
        if not any(tensor is target for target in written)
        for event in (mark.absorbed, mark.inf, mark.nan)
        if event is not None and not event.is_all_literal
    ]
    event = min(sources, key=lambda source: source.order, default=None)
    if event is None or event.phase != "optimizer":
        return None
    for tensor in made:
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            continue
        if any(tensor is target for target in written) and tensor.numel() and not bool(tensor.any()):
            return event
        if tensor.numel() <= _LARGEST:
            marks.absorb(tensor, event)
    return None
