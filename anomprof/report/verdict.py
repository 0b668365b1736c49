"""The result in sentences: for a reader who reads nothing else.

A sentence never claims more than the verdict does: what is not resolved is said to be so, a mode
without proof gets no number, and a mode that did not run gets its reason.
"""

from __future__ import annotations

from anomprof.report import units
from anomprof.results import BASELINE, ModeResult, Results
from anomprof.stats import ROUNDS_TO_TRUST, Interval

_HEADLINER = "anomaly"

_WORKLOADS = {
    "resnet50": "ResNet-50",
    "resnet18": "ResNet-18",
    "vit": "ViT",
    "gpt": "GPT",
    "lstm": "LSTM",
    "mlp": "MLP",
}
_LABELS = {
    "anomaly": "Anomaly mode",
    "anomaly-stacks": "Anomaly mode without its NaN check",
    "profiler": "torch.profiler",
    "autograd-profiler": "torch.autograd.profiler",
    "clip-norm": "Clipping the gradient norm",
    "clip-value": "Clipping gradient values",
    "amp-bf16": "AMP with bfloat16",
    "amp-fp16": "AMP with float16",
    "checkpoint": "Checkpointing",
    "checkpoint-reentrant": "Reentrant checkpointing",
    "compile": "torch.compile",
    "baseline-again": "The baseline measured once more",
}

# Counted bytes repeat exactly; a smaller change of the peak is not worth a reader's time.
_MEMORY_WORTH_SAYING = 0.02


def step_name(results: Results) -> str:
    """Returns how sentences call the measured step, as in "ResNet-50 step"."""
    name = results.facts.get("workload", {}).get("name") or results.facts.get("plan", {}).get("workload")
    return f"{_WORKLOADS.get(str(name), units.one_line(str(name)))} step" if name else "training step"


def headline(results: Results) -> str:
    """Returns the sentence that the report opens with: about anomaly mode where that was planned."""
    baseline = results.mode(BASELINE)
    step = step_name(results)
    if baseline is None or baseline.step is None:
        return f"Nothing can be said about this {step}: the run ended before any baseline turn was complete."
    if not baseline.applied:
        doubt = f"the baseline is not known to be a plain step ({_seen(baseline)})"
        return f"Nothing can be said about this {step}: {doubt}."
    others = [mode for mode in results.modes if mode.name != BASELINE]
    lead = results.mode(_HEADLINER) or (others[0] if others else None)
    if lead is None:
        return f"This {step} takes {units.seconds_with_interval(baseline.step)}; no other mode was measured."
    return _sentence(lead, results) + _provisional(lead)


def sentences(results: Results) -> tuple[str, ...]:
    """Returns one sentence for each mode that the headline does not speak of, in the plan's order."""
    baseline = results.mode(BASELINE)
    if baseline is None or baseline.step is None or not baseline.applied:
        return ()
    spoken = headline(results)
    said = [_sentence(mode, results) for mode in results.modes if mode.name != BASELINE]
    return tuple(sentence for sentence in said if not spoken.startswith(sentence))


def _provisional(mode: ModeResult) -> str:
    decided = mode.verdict not in (None, "not resolved") and mode.applied and not mode.sat_out
    if not decided or mode.slowdown is None or mode.slowdown.n >= ROUNDS_TO_TRUST:
        return ""
    return f" (Provisional: {mode.slowdown.n} rounds only.)"


def label(name: str) -> str:
    """Returns how sentences call a mode; parts of a combination are joined by "with"."""
    if name in _LABELS:
        return _LABELS[name]
    first, *rest = name.split("+")
    if first in _LABELS and all(part in _LABELS for part in rest):
        return " with ".join([_LABELS[first], *(_inside(_LABELS[part]) for part in rest)])
    return f"Mode {units.one_line(name)}"


def _sentence(mode: ModeResult, results: Results) -> str:
    name, step = label(mode.name), step_name(results)
    if not mode.available:
        return f"{name} is not available here: {_ended(mode.reason or 'no reason was recorded')}"
    if mode.slowdown is None:
        return f"{name} was not measured: no round with both it and the baseline is complete."
    if not mode.applied:
        return f"{name} has no result: there is no proof that it was on ({_seen(mode)})."
    if mode.verdict == "not resolved":
        return _not_resolved(name, step, mode.slowdown) + _memory_alone(mode)
    how = _how_long(name, step, mode, mode.slowdown)
    return how + _remark(mode, results)


def _how_long(name: str, step: str, mode: ModeResult, slowdown: Interval) -> str:
    factor, interval = units.ratio_estimate(slowdown), units.ratio_range(slowdown)
    if mode.verdict == "no difference":
        same = f"{name} makes no difference to the time of this {step}"
        return f"{same}: {factor}x ({interval}){_and_memory(mode)}"
    if mode.verdict == "faster":
        return f"{name} cuts this {step} to {factor}x the time ({interval}){_and_memory(mode)}"
    if mode.name == _HEADLINER:
        return f"{name} makes this {step} {factor}x slower ({interval})"
    return f"{name} costs {factor}x the time ({interval}){_and_memory(mode)}"


def _remark(mode: ModeResult, results: Results) -> str:
    """Returns the end of the sentence: why it is so, and what to do."""
    if mode.name == _HEADLINER and mode.verdict == "slower":
        return f"{_parts(results)}; leave it off outside debugging."
    if mode.verdict == "faster" and mode.keeps_numbers:
        return "; it only adds work, so doubt the measurement rather than believe this."
    why = mode.figures.get("why_slow")
    if why and mode.verdict == "slower":
        return f": {_ended(str(why))}"
    return "."


def _parts(results: Results) -> str:
    cost = results.anomaly_cost
    stacks = results.mode("anomaly-stacks")
    if cost is None or cost.stacks is None or cost.checks is None or stacks is None or not stacks.applied:
        return ""
    return f": stacks {_part(cost.stacks)}, checks {_part(cost.checks)}"


def _part(share: Interval) -> str:
    return units.share_estimate(share) if share.n > 1 and share.low > 0 else "not resolved"


def _not_resolved(name: str, step: str, slowdown: Interval) -> str:
    factor, interval = units.ratio_estimate(slowdown), units.ratio_range(slowdown)
    if slowdown.n < 2:
        return f"{name} ran in one round only ({factor}x), which is too little for a verdict on this {step}."
    return (
        f"What {_inside(name)} costs this {step} is not resolved: {factor}x ({interval}) "
        f"after {slowdown.n} rounds; a larger budget would tell."
    )


def _and_memory(mode: ModeResult) -> str:
    if mode.memory_ratio is None or abs(mode.memory_ratio - 1) < _MEMORY_WORTH_SAYING:
        return ""
    return f" and needs {units.memory_ratio(mode.memory_ratio)}x the memory"


def _memory_alone(mode: ModeResult) -> str:
    memory = _and_memory(mode)
    return f" It{memory.removeprefix(' and')}." if memory else ""


def _inside(name: str) -> str:
    """Returns a label for use within a sentence; names such as AMP and torch.profiler stay."""
    return name[0].lower() + name[1:] if name[:2].istitle() else name


def _seen(mode: ModeResult) -> str:
    return units.one_line(mode.proof) or "nothing was recorded"


def _ended(words: str) -> str:
    return units.one_line(words).rstrip(". ") + "."
