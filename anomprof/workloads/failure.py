"""Says in one sentence what the user's own code raised."""

from __future__ import annotations

import traceback
from pathlib import Path

from anomprof.errors import COULD_NOT_MEASURE, UserError


def raised(error: BaseException, what: str, path: Path) -> UserError:
    """Turns an exception of the user's code into a sentence.

    Args:
        error: What was caught.
        what: What was being done.
        path: The user's file; the sentence names the innermost line in it.
    """
    if isinstance(error, UserError):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}:{error.lineno}"
        message = error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        place = f"{path.name}:{lines[-1]}" if lines else path.name
        message = str(error)
    return UserError(
        f"{what} raised {in_short(error, message)} at {place}; repair it there", COULD_NOT_MEASURE
    )


def in_short(error: BaseException, message: str | None = None) -> str:
    """Returns an exception's type and the first line of its message."""
    text = str(error) if message is None else message
    lines = text.strip().splitlines()
    return f"{type(error).__name__} ({lines[0].rstrip(' .:')})" if lines else type(error).__name__
