"""Findings such as watched runs make, written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from anomprof.advice import advise
from anomprof.findings import Finding, Findings, Frame, Link, Note, TensorSummary

INF = float("inf")

SCRIPT = '''"""Trains a small model of spectra."""

import torch
from torch import nn


class Energy(nn.Module):
    """Magnitude of a spectrum, summed over bands."""

    def __init__(self, bands: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(bands))

    def forward(self, spectrum):
        power = spectrum.real**2 + spectrum.imag**2
        # Silence has no power at all.
        root = torch.sqrt(power)
        quiet = power < 1e-10
        root = torch.where(quiet, torch.zeros_like(root), root)
        return root @ self.weight


def train(model, loader, optimizer):
    for spectrum, target in loader:
        loss = nn.functional.mse_loss(model(spectrum), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
'''


def tensor(
    shape: tuple[int, ...], low: float | None = None, high: float | None = None, nan: int | None = 0,
    inf: int | None = 0, dtype: str = "float32",
) -> TensorSummary:  # fmt: skip
    return TensorSummary(shape, dtype, low, high, nan, inf)


def finding(**changed: object) -> Finding:
    """The gradient of a root at 0, behind a where; advice is made from the fields unless it is given."""
    plain = Finding(
        kind="nan",
        phase="backward",
        step=2,
        rank=0,
        op="aten::sqrt",
        node="SqrtBackward0",
        backward_op="aten::div",
        module="energy",
        file="train.py",
        line=17,
        function="forward",
        code="root = torch.sqrt(power)",
        confidence="exact",
        inputs=(tensor((16, 257), 0.0, 0.0), tensor((16, 257), 0.0, 3.61)),
        outputs=(tensor((16, 257), -0.0417, 0.0385, nan=514),),
        callers=(
            Frame("train.py", 25, "train", "loss = nn.functional.mse_loss(model(spectrum), target)"),
            Frame("train.py", 60, "<module>", "train(model, loader, optimizer)"),
        ),
        chain=(
            Link("aten::div", "backward", "energy", "train.py", 17, "root = torch.sqrt(power)", "nan"),
            Link(
                "aten::mul",
                "backward",
                "energy",
                "train.py",
                15,
                "power = spectrum.real**2 + spectrum.imag**2",
            ),
            Link("aten::addmm", "backward", "front.0", "train.py", 25, ""),
        ),
        symptom="gradient of front.0.weight",
        advice=None,  # type: ignore[arg-type]
    )
    made = replace(plain, **changed)  # type: ignore[arg-type]
    if made.advice is not None:
        return made
    facts = {
        name: getattr(made, name) for name in ("inputs", "outputs", "module", "symptom", "code", "message")
    }
    return replace(made, advice=advise(made.kind, made.phase, made.op, made.node, **facts))


def softmax(**changed: object) -> Finding:
    """Attention over a row that is masked entirely."""
    values: dict[str, object] = {
        "phase": "forward", "step": 1, "op": "aten::_softmax", "node": None, "backward_op": None,
        "module": "encoder.layers.3.attn", "file": "src/attention.py", "line": 88,
        "code": "weights = torch.softmax(scores.masked_fill(mask, float('-inf')), dim=-1)",
        "inputs": (tensor((8, 4, 128, 128), -INF, 7.813, 0, 66048),),
        "outputs": (tensor((8, 4, 128, 128), 0.0, 1.0, 512),),
        "chain": (
            Link("aten::masked_fill", "forward", "encoder.layers.3.attn", "src/attention.py", 88, "", "inf"),
            Link("aten::_softmax", "forward", "encoder.layers.3.attn", "src/attention.py", 88, "", "nan"),
            *(Link(op, "forward", f"encoder.layers.{n}", "src/attention.py", 90 + n, "", "nan")
              for n in range(3, 12) for op in ("aten::bmm", "aten::addmm", "aten::native_layer_norm")),
            Link("aten::nll_loss_forward", "forward", "", "train.py", 41, "loss = criterion(out, y)", "nan"),
        ),
        "symptom": "loss", "occurrences": 12, "last_step": 30,
    }  # fmt: skip
    return finding(**{**values, **changed})


def clip(**changed: object) -> Finding:
    """An infinite norm in clipping."""
    values: dict[str, object] = {
        "kind": "inf", "phase": "optimizer", "step": 7, "op": "aten::linalg_vector_norm", "node": None,
        "backward_op": None, "module": "", "line": 27, "function": "train",
        "code": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "inputs": (tensor((6,), 0.0, 3.1e19),), "outputs": (tensor((), INF, INF, 0, 1),),
        "chain": (), "symptom": "gradient of lin.weight, silently set to 0", "confidence": "module",
    }  # fmt: skip
    return finding(**{**values, **changed})


def bad_batch(**changed: object) -> Finding:
    """A sample that was bad when the loader handed it over."""
    values: dict[str, object] = {
        "phase": "input", "step": 17, "op": "DataLoader", "node": None, "backward_op": None, "module": "",
        "line": 24, "function": "train", "code": "for spectrum, target in loader:",
        "inputs": (), "outputs": (tensor((32, 3, 64, 64), -2.1, 2.64, 12288),),
        "message": "Batch 17, sample 3: 12,288 of its 12,288 elements are NaN.",
        "chain": (
            Link("DataLoader", "input", "", "train.py", 24),
            Link("aten::convolution", "forward", "stem", "train.py", 9),
        ),
        "symptom": "loss",
    }  # fmt: skip
    return finding(**{**values, **changed})


def in_place(**changed: object) -> Finding:
    """A saved tensor that was changed in place."""
    values: dict[str, object] = {
        "kind": "error", "phase": "forward", "step": 0, "op": "aten::add_", "node": "SigmoidBackward0",
        "backward_op": None, "module": "body.1", "line": 31, "code": "hidden += skip",
        "inputs": (tensor((16, 32), 0.01, 0.98), tensor((16, 32), -3.0, 3.1)),
        "outputs": (tensor((16, 32), -2.4, 4.0),),
        "chain": (), "symptom": "",
        "message": "RuntimeError: one of the variables needed for gradient computation has been modified "
        "by an inplace operation: [torch.FloatTensor [16, 32]], which is output 0 of SigmoidBackward0, is at "
        "version 1; expected version 0 instead.",
    }  # fmt: skip
    return finding(**{**values, **changed})


FACTS = {
    "command": "python -m anomprof run train.py --lr 0.1",
    "script": "train.py",
    "started_utc": "2026-12-01T14:05:11Z",
    "anomprof_version": "0.2.0",
    "detect": "trace",
    "ops_watched": 48211,
    "modules_watched": 63,
    "seconds": 41.7,
    "exit_status": 0,
    "environment": {"torch_version": "2.13.0", "python_version": "3.12.3", "cpu_name": "Some CPU"},
    "not_watched": ["1 scripted function: its ops are seen at the line that called it"],
}
NOTES = (
    Note("GradScaler skipped a step (scale 65536 -> 32768)", 0, 3),
    Note("the buffer `mask` holds -Inf on purpose"),
)


def findings(*found: Finding, **changed: object) -> Findings:
    values: dict[str, object] = {"steps": 40, "findings": found, "notes": NOTES, "facts": dict(FACTS)}
    return Findings(**{**values, **changed})  # type: ignore[arg-type]


def write_script(folder: Path) -> Path:
    """Writes the source that :func:`finding` is about."""
    path = folder / "train.py"
    path.write_text(SCRIPT)
    return path
