"""Writes a record such as a bench of resnet50 on two cores leaves behind, without measuring anything."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anomprof.record import Reading, RecordWriter, Sample, Site, Step, Turn

BASE_SECONDS = 0.492

#: Mode -> how many times longer its step is.
FACTORS = {
    "baseline": 1.0,
    "anomaly": 1.27,
    "anomaly-stacks": 1.06,
    "profiler": 1.19,
    "profiler+anomaly": 1.55,
    "clip-norm": 1.018,
    "clip-value": 1.003,
    "amp-bf16": 11.2,
    "checkpoint": 1.31,
}
SUMMARIES = {
    "baseline": "the training step as it is",
    "anomaly": "torch.autograd.detect_anomaly",
    "anomaly-stacks": "anomaly mode without its NaN check",
    "profiler": "torch.profiler around the step",
    "profiler+anomaly": "torch.profiler around the step + torch.autograd.detect_anomaly",
    "clip-norm": "clip_grad_norm_ at 1.0",
    "clip-value": "clip_grad_value_ at 1.0",
    "amp-bf16": "autocast to bfloat16",
    "amp-fp16": "autocast to float16 with GradScaler",
    "checkpoint": "recompute the 16 blocks in the backward pass",
}
PROOFS = {
    "baseline": "no mode is on",
    "anomaly": "161 nodes checked",
    "anomaly-stacks": "161 nodes carry a stack",
    "profiler": "4,812 events recorded",
    "profiler+anomaly": "5,295 events recorded; 161 nodes checked",
    "clip-norm": "norm computed in every step",
    "clip-value": "161 gradients within the bounds",
    "amp-bf16": "54 convolutions and matrix products gave bfloat16",
    "checkpoint": "16 blocks ran again in the backward pass",
}
FIGURES: dict[str, dict[str, Any]] = {
    "clip-norm": {"clipped_share": 0.75, "threshold": 1.0},
    "amp-bf16": {"why_slow": "this CPU has no bfloat16 units, so every operation converts and emulates"},
}
CHANGES_NUMBERS = {"clip-norm", "clip-value", "amp-bf16", "amp-fp16"}
CHANGES_BUFFERS = {*CHANGES_NUMBERS, "checkpoint"}
SAT_OUT = {"amp-bf16": "its verdict was beyond doubt after 2 rounds (11x)"}
MEMORY_RATIOS = {"checkpoint": 0.62, "amp-bf16": 0.71, "anomaly": 1.01}
UNAVAILABLE = {"amp-fp16": "float16 convolutions are not implemented on this CPU"}

OPS = {  # op -> (calls, seconds of self time, bytes)
    "aten::mkldnn_convolution": (53, 0.121, 310 * 2**20),
    "aten::convolution_backward": (53, 0.243, 290 * 2**20),
    "aten::native_batch_norm": (53, 0.031, 300 * 2**20),
    "aten::native_batch_norm_backward": (53, 0.044, 280 * 2**20),
    "aten::clamp_min_": (49, 0.011, 0),
    "aten::threshold_backward": (49, 0.014, 250 * 2**20),
    "aten::add_": (16, 0.006, 0),
    "aten::_foreach_add_": (2, 0.008, 0),
    "aten::max_pool2d_with_indices": (1, 0.004, 6 * 2**20),
    "aten::addmm": (1, 0.001, 8000),
}
ANOMALY_OPS = {
    "aten::isnan": (161, 0.049, 40 * 2**20),
    "aten::_is_any_true": (161, 0.036, 161),
    "aten::_local_scalar_dense": (161, 0.0008, 0),
}

FACTS: dict[str, Any] = {
    "kind": "bench",
    "anomprof_version": "0.1.0",
    "started_utc": "2026-01-15T09:30:00Z",
    "command": "anomprof bench resnet50",
    "plan": {
        "workload": "resnet50", "modes": list(SUMMARIES), "device": "cpu", "dtype": "float32",
        "batch_size": 2, "image_size": 224, "sequence_length": None, "optimizer": "sgd", "seed": 0,
        "steps": None, "budget_seconds": 180.0, "quick": False, "processes": 1, "data": None,
        "clip_norm": 1.0, "clip_value": 1.0,
    },
    "workload": {
        "name": "resnet50", "parameter_count": 25_557_032, "samples_per_batch": 2,
        "facts": {"pictures": "synthetic", "image size": "224 px"},
    },
    "environment": {
        "cpu_name": "Example CPU @ 2.60GHz", "logical_cores": 2, "torch_threads": 2,
        "cpu_clock_hertz": 2.6e9, "memory_bytes": 16 * 2**30, "torch_version": "2.13.0+cpu",
        "python_version": "3.11.7", "operating_system": "Linux", "debug_switches": [],
    },
    "telemetry": {"unavailable_because": "no NVIDIA driver", "name": None, "notes": []},
    "steps_per_turn": 2,
}  # fmt: skip


def write_record(
    folder: Path,
    *,
    rounds: int = 12,
    steps_per_turn: int = 2,
    noise: float = 0.01,
    factors: Mapping[str, float] = FACTORS,
    facts: Mapping[str, Any] = FACTS,
    mode_facts: Mapping[str, Mapping[str, Any]] | None = None,
    killed: bool = False,
    extra_readings: int = 0,
) -> Path:
    """Writes a record and returns its folder.

    Args:
        mode_facts: Facts that replace the usual ones, by mode.
        killed: Leaves the last turn without its end and the run without status.
        extra_readings: Readings by module, as a trace would add them.
    """
    randomness = random.Random(1)
    writer = RecordWriter.create(folder)
    for key, value in facts.items():
        writer.fact(key, value)
    writer.fact("status", "running")
    for name in [*factors, *UNAVAILABLE]:
        writer.mode(name, {**_mode_facts(name), **(mode_facts or {}).get(name, {})})
    clock = 1000.0
    for round_ in range(rounds):
        names = [name for name in factors if name not in SAT_OUT or round_ < 2]
        randomness.shuffle(names)
        for position, name in enumerate(names):
            turn = writer.begin_turn(Turn(0, round_, position, name, clock))
            cut = killed and round_ == rounds - 1 and position == len(names) - 1
            for number in range(1 if cut else steps_per_turn):
                seconds = BASE_SECONDS * factors[name] * randomness.lognormvariate(0, noise)
                writer.step(turn, Step(number, clock, 0.002, seconds, seconds * 0.001))
                clock += seconds + 0.002
            if not cut:
                parameters = name if name in CHANGES_NUMBERS else "same"
                buffers = name if name in CHANGES_BUFFERS else "same"
                writer.end_turn(
                    turn, {"final_loss": 6.91, "parameters_digest": parameters, "buffers_digest": buffers}
                )
    writer.readings(_readings(factors))
    writer.readings(
        Reading("anomaly", "calls", 1, Site("forward", f"layer{i % 100}", "aten::add", i))
        for i in range(extra_readings)
    )
    writer.samples(Sample(1000.0 + second, "host", "other_cpu_ratio", 0.03) for second in range(60))
    if not killed:
        writer.fact("status", "finished")
        writer.fact("stop_reason", "every interval is narrower than +-2 %")
    writer.close()
    return folder


def _mode_facts(name: str) -> dict[str, Any]:
    if name in UNAVAILABLE:
        return {"summary": SUMMARIES[name], "available": False, "reason": UNAVAILABLE[name]}
    return {
        "summary": SUMMARIES.get(name, ""),
        "available": True,
        "applied": True,
        "proof": PROOFS.get(name, "seen"),
        "figures": FIGURES.get(name, {}),
        "keeps_numbers": name not in CHANGES_NUMBERS,
        "sat_out": SAT_OUT.get(name),
        "first_step_seconds": 1.1,
    }


def _readings(factors: Mapping[str, float]) -> list[Reading]:
    readings = []
    for name in factors:
        peak = 640 * 2**20 * MEMORY_RATIOS.get(name, 1.0)
        readings.append(Reading(name, "peak_bytes", peak))
        is_anomaly = name in ("anomaly", "profiler+anomaly")
        readings.append(Reading(name, "host_syncs", 162 if is_anomaly else 1))
        ops = {**OPS, **(ANOMALY_OPS if is_anomaly else {})}
        for op, (calls, seconds, size) in ops.items():
            site = Site(op=op)
            readings.append(Reading(name, "calls", calls, site))
            readings.append(Reading(name, "self_seconds", seconds, site))
            readings.append(Reading(name, "memory_bytes", size, site))
    return readings
