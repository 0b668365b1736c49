from __future__ import annotations

import pytest
import torch
from torch import nn

from anomprof.workloads.optimizers import OPTIMIZERS, build_optimizer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_keeps_parameters_finite_in_every_dtype(name: str, dtype: torch.dtype) -> None:
    model = nn.Linear(4, 1).to(dtype)
    optimizer, _ = build_optimizer(name, model, {})
    before = model.weight.detach().clone()
    for _ in range(3):
        # Small enough that its square is zero in float16.
        model.weight.grad = torch.full_like(model.weight, 1e-4)
        model.bias.grad = torch.zeros_like(model.bias)
        optimizer.step()
    assert model.weight.isfinite().all()
    assert model.bias.isfinite().all()
    if dtype == torch.float32:
        assert not torch.equal(model.weight, before)


def test_a_workloads_own_rate_is_preferred_and_described() -> None:
    optimizer, words = build_optimizer("sgd", nn.Linear(1, 1), {"sgd": 0.5, "adam": 9.0})
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.param_groups[0]["momentum"] == 0.9
    assert words == "sgd, learning rate 0.5, momentum 0.9"
