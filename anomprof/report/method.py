"""How it was measured, in words: what a reader must know to believe or to repeat the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anomprof.report import units
from anomprof.results import Results
from anomprof.stats import MARGIN, NARROW, RESAMPLES


def paragraphs(results: Results) -> tuple[str, ...]:
    """Returns the points of the section, each a sentence or two."""
    facts = results.facts
    return (
        f"{_extent(results)} Every round gives each mode one turn, in an order reshuffled each round, and "
        "the baseline one before the first, after every second and after the last of them, so that a "
        "slow moment of the machine strikes a mode and the baseline beside it alike.",
        "A turn restores the training state (model, buffers, optimizer, random numbers), takes one "
        "settling step that is not timed, and then its timed steps: every mode takes the same steps on the "
        "same batches. Digests of the parameters and buffers afterwards show whether it ended where the "
        "baseline ends.",
        "A step runs from zeroing the gradients to the end of the optimizer's step on the device, entering "
        "and leaving the mode included; waiting for the batch is timed apart.",
        "The slowdown is the ratio of a mode's median step in a turn to that of the baseline in the turns "
        "just before and after; over the rounds, the interquartile mean of its logarithm. Its 95 % interval "
        "is a bootstrap of "
        f"{RESAMPLES:,} resamples, stretched for small samples (Student's t). The interval of a step time "
        "is that of a median.",
        f"Slower or faster: the whole interval lies more than {units.percent(MARGIN)} from 1. No "
        f"difference: it lies within {units.percent(NARROW)} of 1. Otherwise: not resolved.",
        _ending(facts),
        "Memory and ops come from passes of their own under the profiler (on a CUDA device, peak memory "
        "from the allocator's statistics), never from timed steps. The op rows of a mode are one profiled "
        "step, without an interval.",
        "All raw times are in steps.csv, all ops in ops.csv; record.sqlite holds everything.",
    )


def _extent(results: Results) -> str:
    rounds = "1 round" if results.rounds == 1 else f"{results.rounds} rounds"
    where = "" if results.processes < 2 else f" in {results.processes} processes"
    steps = results.facts.get("steps_per_turn")
    each = f" with {units.text(steps)} timed step{'' if steps == 1 else 's'} a turn" if steps else ""
    return f"{rounds[0].upper()}{rounds[1:]}{where}{each}."


def _ending(facts: Mapping[str, Any]) -> str:
    reason = facts.get("stop_reason")
    if reason:
        end = f"The rounds ended because {units.one_line(str(reason)).rstrip('.')}."
    elif facts.get("status") == "interrupted":
        end = "The rounds ended because the run was interrupted."
    else:
        end = "Why the rounds ended was not recorded: the run was killed or is still running."
    return f"{end} A mode whose interval is narrow or whose verdict is beyond doubt sits out later rounds."
