"""The finding of a bad step whose origin a replay did not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anomprof.advice import advise
from anomprof.findings import Finding, Frame, Link
from anomprof.tracing.tracer import Tracer

if TYPE_CHECKING:
    from anomprof.guarding.replaying import Trip

_PHASES = {
    "loss": "forward",
    "output": "forward",
    "gradient": "backward",
    "update": "optimizer",
    "written": "optimizer",
}
_SYMPTOMS = {
    "loss": "loss",
    "output": "output of",
    "gradient": "gradient of",
    "update": "parameter",
    "written": "parameter",
}


def finding(tracer: Tracer, trip: Trip, doubts: list[str]) -> Finding:
    """Returns what is known: where it was noticed, and that the step came out clean when done again."""
    narrator = tracer.narrator
    frames = [narrator.frame(point) for point in trip.points]
    here = frames[0] if frames else Frame("", 0, "", "")
    tensor = trip.tensors[0] if trip.tensors else None
    values = tensor.detach() if tensor is not None else None
    is_nan = any(value != value for value in trip.values) or (
        values is not None and bool(values.isnan().any())
    )
    phase = _PHASES[trip.what]
    kind = "nan" if is_nan else "inf"
    symptom = _SYMPTOMS[trip.what]
    if trip.what == "gradient" and tensor is not None:
        owner = next((held for held in tracer.stakes.parameters() if held.grad is tensor), None)
        symptom = f"gradient of {narrator.tensor_name(owner)}" if owner is not None else "a buffer"
    elif tensor is not None:
        symptom = f"parameter {narrator.tensor_name(tensor)}"
    elif trip.module is not None:
        symptom = f"output of {narrator.module_name(trip.module)} in evaluation"
    if doubts:
        message = f"The step could not be done again as it was ({'; '.join(dict.fromkeys(doubts))})."
        verdict = "not checked"
    else:
        message = (
            "Not deterministic: done again twice, from the same state and the same random numbers, "
            "the step came out finite."
        )
        verdict = "not deterministic"
    step = narrator.step_of(tracer.steps.now(), is_input=phase == "forward")
    return Finding(
        kind=kind,
        phase=phase,
        step=step,
        rank=narrator.rank,
        op="",
        node=None,
        backward_op=None,
        module="",
        file=here.file,
        line=here.line,
        function=here.function,
        code=here.code,
        confidence="unknown",
        inputs=(),
        outputs=(),
        callers=tuple(frames[1:]),
        chain=(Link("", phase, "", here.file, here.line, here.code, kind),),
        symptom=symptom,
        advice=advise(kind, phase, "", None, symptom=symptom, code=here.code, message=message),
        message=message,
        reproducibility=verdict,
    )
