"""Sentences with code between backticks, as advice is written."""

from __future__ import annotations


def pieces(words: str) -> list[tuple[str, bool]]:
    """Returns the pieces of a sentence in their order, and of each whether it is code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:  # a lone backtick opens nothing
        parts[-2:] = ["`".join(parts[-2:])]
    return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]


def plain(words: str) -> str:
    """Returns the sentence without the marks, for readers of plain text."""
    return "".join(part for part, _ in pieces(words))
