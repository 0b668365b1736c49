from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from anomprof.workloads import WorkloadOptions, build
from anomprof.workloads.text import BATCHES, Text, text_batches

CPU = torch.device("cpu")
Options = Callable[..., WorkloadOptions]


def test_targets_are_the_tokens_that_follow() -> None:
    text = Text(bytes(range(200)), "count")
    for tokens, following in text_batches(text, 3, 10, seed=0, device=CPU):
        assert tokens.shape == following.shape == (3, 10)
        # Byte i of this text is i, so each is its predecessor plus one.
        assert torch.equal(following, tokens + 1)
        assert torch.equal(tokens[:, 1:], tokens[:, :-1] + 1)


def test_the_last_byte_can_be_a_target_and_the_first_a_token() -> None:
    text = Text(bytes(range(18)), "count")
    batches = text_batches(text, 50, 2, seed=0, device=CPU)
    assert len(batches) == BATCHES
    assert min(tokens.min().item() for tokens, _ in batches) == 0
    assert max(following.max().item() for _, following in batches) == 17


def test_the_default_text_is_long_and_the_same_each_time() -> None:
    text = Text.from_python()
    assert len(text.content) > 100_000
    assert text.content == Text.from_python().content
    assert b"lambda" in bytes(text.content)


def test_a_workload_trains_on_a_file_and_says_so(tmp_path: Path, options: Options) -> None:
    file = tmp_path / "tale.txt"
    file.write_text("Once upon a time. " * 10)
    workload = build("lstm", options(data=file, batch_size=2, sequence_length=8))
    tokens, following = next(iter(workload.batches))
    assert workload.facts["data"] == "text file tale.txt, 180 bytes"
    assert bytes(tokens[0].tolist()) in file.read_bytes()
    assert workload.loss(workload.model, (tokens, following)).isfinite()


def test_files_that_cannot_serve_are_refused(
    tmp_path: Path, options: Options, sentence: Callable[..., str]
) -> None:
    def refusal(path: Path) -> str:
        return sentence(lambda: build("gpt", options(data=path)))

    assert refusal(tmp_path / "none") == f"--data {tmp_path / 'none'} does not exist; give a text file"
    assert refusal(tmp_path) == (
        f"--data {tmp_path} is a folder and language models read a text file; give a file"
    )
    file = tmp_path / "short.txt"
    file.write_bytes(b"")
    assert refusal(file) == f"--data {file} is empty; give a file with text in it"
    file.write_bytes(b"x" * 79)
    # 64 and one start for each of 16 batches.
    assert refusal(file) == (
        "sequences of 64 bytes take a text of 80 bytes or more, and this is one of 79 "
        "(text file short.txt, 79 bytes); give a longer text or a smaller --sequence-length"
    )
    file.write_bytes(b"x" * 80)
    assert build("gpt", options(data=file)).facts["data"] == "text file short.txt, 80 bytes"


def test_a_python_without_the_default_text_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, sentence: Callable[..., str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pydoc_data.topics", None)
    assert "give a text file with --data" in sentence(Text.from_python, exit_code=3)


def test_batches_larger_than_memory_are_refused(options: Options, sentence: Callable[..., str]) -> None:
    message = sentence(lambda: build("gpt", options(batch_size=10**12)), exit_code=3)
    assert message.startswith("the batches alone would take ")
