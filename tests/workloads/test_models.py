"""Parameter counts against published ones, on the meta device, which allocates nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from anomprof.workloads.gpt import GPT, GPTConfig
from anomprof.workloads.lstm import LSTMLanguageModel
from anomprof.workloads.mlp import MLP
from anomprof.workloads.resnet import resnet18, resnet50
from anomprof.workloads.vit import VisionTransformer


@pytest.mark.parametrize(
    ("make", "published"),
    [
        (resnet50, 25_557_032),
        (resnet18, 11_689_512),
        # At 224 px 14 x 14 patches. Patches 3*16*16*192 + 192 = 147,648; class token 192; positions
        # 197*192 = 37,824; 12 blocks of 444,864 (norms 768, qkv 111,168, proj 37,056, fc1 148,224,
        # fc2 147,648) = 5,338,368; norm 384; head 193,000.
        (VisionTransformer, 5_717_416),
        # nanoGPT's "10.65M" leaves out the 256*384 = 98,304 of the positions.
        (lambda: GPT(GPTConfig(6, 6, 384, 256, 65, bias=False)), 10_745_088),
        (lambda: GPT(GPTConfig(12, 12, 768, 1024, 50257, bias=True)), 124_439_808),
        # Tokens 256*128 = 32,768; positions 64*128 = 8,192; 4 blocks of 2*128 + 12*128*128 = 196,864;
        # norm 128. The head is the token table.
        (GPT, 828_544),
        # 2,000,000 + 2 * 4 * (200*200 + 200*200 + 200 + 200) + 2,010,000
        (lambda: LSTMLanguageModel(10_000), 4_653_200),
        # 256*200 + 643,200 + 200*256 + 256
        (LSTMLanguageModel, 745_856),
        # 785*512 + 513*512 + 513*10
        (MLP, 669_706),
    ],
)
def test_a_model_has_the_published_number_of_parameters(
    make: Callable[[], nn.Module], published: int
) -> None:
    with torch.device("meta"):
        model = make()
    assert sum(parameter.numel() for parameter in model.parameters()) == published


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (resnet50, 3 + 4 + 6 + 3),
        (resnet18, 2 + 2 + 2 + 2),
        (VisionTransformer, 12),
        (GPT, 4),
        (LSTMLanguageModel, 2),
        (MLP, 1),
    ],
)
def test_block_names_are_names_of_modules(make: Callable[[], nn.Module], count: int) -> None:
    with torch.device("meta"):
        model = make()
    names = model.block_names
    assert isinstance(names, tuple)
    assert len(names) == count
    assert set(names) <= {name for name, _ in model.named_modules()}


def test_the_stride_of_a_bottleneck_is_in_its_3x3_convolution() -> None:
    with torch.device("meta"):
        block = resnet50().get_submodule("layer2.0")
    assert block.get_submodule("conv1").stride == (1, 1)
    assert block.get_submodule("conv2").stride == (2, 2)


def test_resnet_halves_a_picture_five_times() -> None:
    with torch.device("meta"):
        model = resnet18()
        model.avgpool = nn.Identity()
        model.fc = nn.Identity()
        # 224 / 32 = 7, so 512 channels of 7 x 7 values.
        assert model(torch.empty(2, 3, 224, 224)).shape == (2, 512 * 7 * 7)


def test_a_gpt_token_does_not_see_those_after_it() -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(2, 2, 16, 8, 10))
    tokens = torch.tensor([[1, 2, 3, 4]])
    other = torch.tensor([[1, 2, 3, 9]])
    assert torch.equal(model(tokens)[:, :3], model(other)[:, :3])
    assert not torch.equal(model(tokens)[:, 3], model(other)[:, 3])


def test_a_gpt_ties_its_output_to_its_token_table() -> None:
    model = GPT()
    assert model.head.weight is model.token_embed.weight


def test_an_untrained_gpt_is_about_as_good_as_guessing() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(256, (4, 65))
    logits = GPT()(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    # ln(256) = 5.545
    assert loss.item() == pytest.approx(5.545, abs=0.1)
