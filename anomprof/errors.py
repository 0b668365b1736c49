"""The one exception for mistakes and obstacles that the user can act on."""

from __future__ import annotations

WRONG_USAGE = 2
COULD_NOT_MEASURE = 3


class UserError(Exception):
    """Ends a command with one clear line on stderr and no traceback.

    The message says what was found, where, and what to do.

    Args:
        message: One sentence for the user.
        exit_code: ``WRONG_USAGE`` (2) where other words on the command line would help,
            ``COULD_NOT_MEASURE`` (3) where the machine or the measured code stood in the way.
    """

    def __init__(self, message: str, exit_code: int = WRONG_USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code
