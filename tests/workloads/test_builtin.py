from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import anomprof
from anomprof.findings import Finding
from anomprof.workload import Workload
from anomprof.workloads import WorkloadOptions, build
from anomprof.workloads.builtin import BUILT_IN

TINY: dict[str, dict[str, Any]] = {
    "resnet50": {"batch_size": 2, "image_size": 32},
    "resnet18": {"batch_size": 1, "image_size": 33},
    "vit": {"batch_size": 2, "image_size": 32},
    "gpt": {"batch_size": 2, "sequence_length": 8},
    "lstm": {"batch_size": 2, "sequence_length": 8},
    "mlp": {"batch_size": 2},
}
Options = Callable[..., WorkloadOptions]


def step(workload: Workload, batch: Any) -> torch.Tensor:
    workload.optimizer.zero_grad()
    loss = workload.loss(workload.model, batch)
    loss.backward()
    workload.optimizer.step()
    return loss.detach()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_step_of_every_workload_changes_every_parameter_and_its_loss_is_finite(
    name: str, options: Options
) -> None:
    workload = build(name, options(**TINY[name]))
    before = [parameter.detach().clone() for parameter in workload.model.parameters()]
    assert workload.model.training
    assert step(workload, next(iter(workload.batches))).isfinite()
    after = list(workload.model.parameters())
    assert all(parameter.grad is not None for parameter in after)
    # Some embeddings see no token of a small batch, but each table changes somewhere.
    assert not any(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_workload_repeats_its_batches_bitwise_and_has_at_least_four(
    name: str, options: Options
) -> None:
    workload = build(name, options(**TINY[name]))
    again = build(name, options(**TINY[name]))
    first, second, third = list(workload.batches), list(workload.batches), list(again.batches)
    assert len({inputs.numpy().tobytes() for inputs, _ in first}) >= 4
    for other in (second, third):
        for one, two in zip(first, other, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", ["gpt", "mlp"])
def test_the_seed_decides_weights_and_batches(name: str, options: Options) -> None:
    one, same, other = (build(name, options(seed=seed, **TINY[name])) for seed in (1, 1, 2))
    weights = [next(workload.model.parameters()) for workload in (one, same, other)]
    batches = [next(iter(workload.batches))[0] for workload in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(batches[0], batches[1])
    assert not torch.equal(weights[0], weights[2])
    assert not torch.equal(batches[0], batches[2])


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", BUILT_IN)
def test_checkpointing_the_named_blocks_leaves_the_gradients_as_they_were(
    name: str, reentrant: bool, options: Options
) -> None:
    plain = build(name, options(**TINY[name]))
    thrifty = build(name, options(**TINY[name]))
    assert thrifty.checkpoint_blocks
    recomputed = []
    for block in thrifty.checkpoint_blocks:
        module = thrifty.model.get_submodule(block)

        def forward(x: torch.Tensor, original: Any = module.forward, block: str = block) -> Any:
            recomputed.append(block)
            return checkpoint(original, x, use_reentrant=reentrant)

        module.forward = forward
    for workload in (plain, thrifty):
        workload.loss(workload.model, next(iter(workload.batches))).backward()
    assert recomputed == list(thrifty.checkpoint_blocks)
    for one, two in zip(plain.model.parameters(), thrifty.model.parameters(), strict=True):
        assert two.grad is not None
        # The fused LSTM rounds differently where gradients are off, as in a reentrant first pass.
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4 if name == "lstm" else 0, atol=1e-7)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_facts_say_what_a_reader_must_know(name: str, options: Options) -> None:
    workload = build(name, options(**TINY[name]))
    assert {"data", "optimizer", "parameters"} <= set(workload.facts)
    assert workload.facts["parameters"] == f"{workload.parameter_count:,}"
    assert workload.samples_per_batch == TINY[name]["batch_size"]
    if name in ("gpt", "lstm"):
        assert workload.facts["data"].startswith("help topics of Python 3.")
        assert workload.facts["sequence length"] == "8 bytes"
        assert workload.facts["optimizer"] == "adamw, learning rate 0.001"
    else:
        assert "synthetic" in workload.facts["data"]
        size = TINY[name].get("image_size", 28)
        assert workload.facts["image size"] == f"{size} px"


@pytest.mark.parametrize("name", ["gpt", "lstm", "mlp"])
def test_a_default_workload_has_the_number_of_parameters_in_the_table(name: str, options: Options) -> None:
    assert build(name, options()).parameter_count == BUILT_IN[name].parameters


def test_the_default_batch_fits_the_device() -> None:
    on_cpu = build("mlp", WorkloadOptions(torch.device("cpu")))
    assert on_cpu.samples_per_batch == 128
    # The meta device stands for an accelerator: nothing is computed on it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anomprof.workloads.assembly.synthetic_batches", lambda *_: [])
        on_accelerator = build("resnet50", WorkloadOptions(torch.device("meta")))
    assert on_accelerator.samples_per_batch == 32


def test_dtype_applies_to_model_and_pictures(options: Options) -> None:
    workload = build("mlp", options(dtype=torch.bfloat16, batch_size=2))
    pictures, labels = next(iter(workload.batches))
    assert {parameter.dtype for parameter in workload.model.parameters()} == {torch.bfloat16}
    assert pictures.dtype == torch.bfloat16
    assert labels.dtype == torch.int64
    assert step(workload, (pictures, labels)).isfinite()


def test_the_users_optimizer_is_taken(options: Options) -> None:
    workload = build("mlp", options(optimizer="rmsprop"))
    assert isinstance(workload.optimizer, torch.optim.RMSprop)
    assert workload.facts["optimizer"] == "rmsprop, learning rate 0.001"


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        (
            "vit",
            {"image_size": 100},
            "--image-size is 100, and vit cuts pictures into squares of 16 px; choose 96 or 112",
        ),
        (
            "vit",
            {"image_size": 5},
            "--image-size is 5, and vit cuts pictures into squares of 16 px; choose 16",
        ),
        ("mlp", {"image_size": 32}, "--image-size is 32, and mlp takes pictures of 28 px only; leave it out"),
        (
            "resnet18",
            {"image_size": 32, "batch_size": 1},
            "one picture of 32 px leaves resnet18's last batch norm a single value to normalise; "
            "choose --batch-size 2 or --image-size 33 or more",
        ),
        (
            "gpt",
            {"image_size": 32},
            "--image-size was given, but gpt reads text and has no use for it; leave it out",
        ),
        (
            "resnet50",
            {"sequence_length": 32},
            "--sequence-length was given, but resnet50 reads pictures and has no use for it; leave it out",
        ),
    ],
)
def test_an_option_that_does_not_suit_the_workload_is_refused(
    name: str, choices: dict[str, int], expected: str, options: Options, sentence: Callable[..., str]
) -> None:
    assert sentence(lambda: build(name, options(**choices))) == expected


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_trace_finds_nothing_on_any_workload_and_changes_no_bit(name: str, options: Options) -> None:
    def run(watched: bool) -> tuple[list[torch.Tensor], list[torch.Tensor], Sequence[Finding]]:
        torch.manual_seed(0)
        workload = build(name, options(**TINY[name]))
        batches = list(workload.batches)[:3]
        torch.manual_seed(1)
        if watched:
            with anomprof.trace() as trace:
                losses = [step(workload, batch) for batch in batches]
            return losses, list(workload.model.parameters()), trace.findings
        losses = [step(workload, batch) for batch in batches]
        return losses, list(workload.model.parameters()), []

    losses, parameters, _ = run(False)
    watched_losses, watched_parameters, findings = run(True)
    assert not findings
    for plain, watched in zip(losses + parameters, watched_losses + watched_parameters, strict=True):
        assert torch.equal(plain, watched)
