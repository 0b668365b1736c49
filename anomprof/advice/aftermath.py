"""What has to be repaired besides the cause: damage that stays when the bad value has gone."""

from __future__ import annotations

import re

from anomprof.advice.case import Case

#: Pattern in the symptom, and what to do.
_AFTERMATH = (
    (
        r"running_(mean|var)",
        "The running statistics stay damaged: `bn.reset_running_stats()`, and skip bad batches before the "
        "forward.",
    ),
    (
        r"exp_avg|optimizer state|momentum_buffer|max_exp_avg",
        "The optimizer's state stays damaged: restore it from a checkpoint, or build the optimizer anew.",
    ),
    (
        r"\b(ema|average)",
        "The averaged copy stays damaged: restore it from a checkpoint or start it anew.",
    ),
)


def remedies(case: Case) -> tuple[str, ...]:
    """Returns what the symptom adds to the advice."""
    return tuple(words for pattern, words in _AFTERMATH if re.search(pattern, case.symptom, re.IGNORECASE))
