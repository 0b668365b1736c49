from __future__ import annotations

from typing import Any

import pytest

from anomprof.environment.precision import low_precision_reason

X86: dict[str, Any] = {"device_type": "cpu", "cpu_architecture": "x86_64"}
ARM: dict[str, Any] = {"device_type": "cpu", "cpu_architecture": "aarch64"}


def test_a_missing_unit_is_named() -> None:
    assert low_precision_reason(X86 | {"cpu_low_precision": ["avx512_bf16"]}, "float16") == (
        "this CPU has no float16 units (avx512_fp16 or amx_fp16): "
        "every float16 op is emulated through float32"
    )
    assert low_precision_reason(ARM | {"cpu_low_precision": ["asimdhp"]}, "bfloat16") == (
        "this CPU has no bfloat16 units (bf16): every bfloat16 op is emulated through float32"
    )


@pytest.mark.parametrize(
    ("environment", "dtype"),
    [
        (X86 | {"cpu_low_precision": ["avx512_bf16"]}, "bfloat16"),
        (X86 | {"cpu_low_precision": ["amx_bf16"]}, "torch.bfloat16"),
        (X86 | {"cpu_low_precision": ["avx512_fp16"]}, "float16"),
        (ARM | {"cpu_low_precision": ["fphp", "asimdhp"]}, "float16"),
        ({"device_type": "cuda", "device_capability": "9.0"}, "bfloat16"),
        ({"device_type": "cuda", "device_capability": "10.0"}, "bfloat16"),
        ({"device_type": "cuda", "device_capability": "7.5"}, "float16"),
        (X86 | {"cpu_low_precision": []}, "float32"),
    ],
)
def test_a_device_with_the_units_needs_no_reason(environment: dict[str, Any], dtype: str) -> None:
    assert low_precision_reason(environment, dtype) is None


@pytest.mark.parametrize(
    "environment",
    [{}, X86, X86 | {"cpu_low_precision": None}, {"device_type": "cuda"}, {"device_type": "mps"}],
)
def test_an_unknown_device_gets_no_invented_reason(environment: dict[str, Any]) -> None:
    assert low_precision_reason(environment, "float16") is None


def test_an_old_gpu_says_what_it_lacks() -> None:
    reason = low_precision_reason({"device_type": "cuda", "device_capability": "7.5"}, "bfloat16")
    assert reason is not None
    assert "7.5" in reason
    assert "8.0" in reason
