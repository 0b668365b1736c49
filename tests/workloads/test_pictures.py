from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image

from anomprof.workloads import WorkloadOptions, build
from anomprof.workloads.pictures import (
    BrokenPicture,
    DecodedPictures,
    PictureFolder,
    PictureFormat,
    PictureLoader,
    synthetic_batches,
    worker_count,
)

CPU = torch.device("cpu")
Options = Callable[..., WorkloadOptions]
GREY = PictureFormat(8, "L", (0.5,), (0.25,))


def loader(folder: Path, batch_size: int, seed: int = 0) -> PictureLoader:
    return PictureLoader(PictureFolder.scan(folder), GREY, batch_size, seed, CPU, torch.float32)


def grey_values(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> list[list[int]]:
    # The reverse of (value / 255 - 0.5) / 0.25.
    return [[round(((p.mean().item() * 0.25) + 0.5) * 255) for p in pictures] for pictures, _ in batches]


def test_a_folder_is_listed_in_sorted_order_and_other_files_are_left_out(picture_folder: Path) -> None:
    folder = PictureFolder.scan(picture_folder)
    assert folder.classes == ("cat", "dog")
    assert [(path.name, number) for path, number in folder.pictures] == [
        ("10.png", 0),
        ("110.jpg", 0),
        ("60.png", 0),
        ("160.JPEG", 1),
        ("210.png", 1),
    ]


def test_pictures_arrive_with_their_labels_and_the_same_on_every_pass(picture_folder: Path) -> None:
    pictures = loader(picture_folder, batch_size=2)
    first = list(pictures)
    # Five pictures are too few for four batches of two: a second order follows, of ten two remain unused.
    assert len(first) == 5
    seen = [value for batch in grey_values(first) for value in batch]
    assert sorted(seen[:5]) == [10, 60, 110, 160, 210]
    assert sorted(seen[5:]) == [10, 60, 110, 160, 210]
    for (_, labels), values in zip(first, grey_values(first), strict=True):
        assert labels.tolist() == [int(value >= 160) for value in values]
    for one, two in zip(first, pictures, strict=True):
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])


def test_a_pass_that_was_left_early_does_not_disturb_the_next(picture_folder: Path) -> None:
    pictures = loader(picture_folder, batch_size=1)
    whole = grey_values(list(pictures))
    beginning = iter(pictures)
    next(beginning)
    assert grey_values(list(pictures)) == whole


def test_the_seed_decides_the_order(picture_folder: Path) -> None:
    assert grey_values(list(loader(picture_folder, 4, seed=1))) != grey_values(
        list(loader(picture_folder, 4, seed=2))
    )


def test_a_folder_smaller_than_one_batch_is_repeated(picture_folder: Path) -> None:
    batches = list(loader(picture_folder, batch_size=7))
    # 4 batches of 7 need 28 of 5 * 6 = 30.
    assert [len(labels) for _, labels in batches] == [7, 7, 7, 7]


def test_reading_pictures_leaves_torchs_random_state_alone(picture_folder: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    list(loader(picture_folder, 2))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_picture_is_resized_by_its_shorter_side_and_cropped_at_the_centre(tmp_path: Path) -> None:
    # 96 x 32: black, white and black squares. The crop sees only the white one.
    picture = Image.new("L", (96, 32), 0)
    picture.paste(255, (32, 0, 64, 32))
    path = tmp_path / "wide.png"
    picture.save(path)
    item = DecodedPictures([[(path, 3)]], PictureFormat(8, "L", (0.0,), (1.0,)), torch.float64)[0]
    assert not isinstance(item, BrokenPicture)
    pictures, labels = item
    assert pictures.shape == (1, 1, 8, 8)
    assert pictures.dtype == torch.float64
    assert torch.equal(pictures, torch.ones(1, 1, 8, 8, dtype=torch.float64))
    assert labels.tolist() == [3]


def test_colours_are_normalised_by_channel(tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    Image.new("RGBA", (20, 20), (255, 0, 0, 255)).save(path)
    item = DecodedPictures([[(path, 0)]], PictureFormat(4), torch.float32)[0]
    assert not isinstance(item, BrokenPicture)
    # Red (1 - 0.485) / 0.229, green (0 - 0.456) / 0.224, blue (0 - 0.406) / 0.225
    expected = [2.2489, -2.0357, -1.8044]
    assert item[0][0, :, 2, 2].tolist() == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("damage", ["truncated", "text", "empty"])
def test_a_broken_picture_is_named_in_one_sentence(
    damage: str, picture_folder: Path, sentence: Callable[..., str]
) -> None:
    broken = picture_folder / "dog" / "210.png"
    if damage == "truncated":
        noise = Image.effect_noise((64, 64), 80)
        noise.save(broken)
        broken.write_bytes(broken.read_bytes()[:600])
    else:
        broken.write_bytes(b"hello" if damage == "text" else b"")
    pictures = loader(picture_folder, batch_size=5)
    message = sentence(lambda: list(pictures), exit_code=3)
    assert message.startswith(f"{broken} cannot be read as a picture, it raised ")
    assert message.endswith("repair it or take it out of --data")


def test_a_picture_that_vanished_is_named_in_one_sentence(
    picture_folder: Path, sentence: Callable[..., str]
) -> None:
    pictures = loader(picture_folder, batch_size=5)
    (picture_folder / "cat" / "10.png").unlink()
    assert "10.png cannot be read as a picture, it raised FileNotFoundError" in sentence(
        lambda: list(pictures), exit_code=3
    )


def test_a_worker_process_that_dies_ends_in_one_sentence(
    picture_folder: Path, sentence: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DecodedPictures, "_decode", lambda *_: __import__("os")._exit(9))
    pictures = loader(picture_folder, batch_size=5)
    message = sentence(lambda: list(pictures), exit_code=3)
    assert message.startswith(
        f"the processes that read --data {picture_folder} failed with RuntimeError: DataLoader worker"
    )


def test_a_missing_folder_a_file_and_empty_folders_are_refused(
    tmp_path: Path, sentence: Callable[..., str]
) -> None:
    def refusal(path: Path) -> str:
        return sentence(lambda: PictureFolder.scan(path))

    assert refusal(tmp_path / "none") == (
        f"--data {tmp_path / 'none'} does not exist; give a folder that holds class/picture.jpg or .png"
    )
    file = tmp_path / "text.txt"
    file.write_text("hello")
    assert refusal(file) == (
        f"--data {file} is a file and image models read a folder of class/picture.jpg or .png; "
        "give such a folder"
    )
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "1.jpg").write_bytes(b"")
    assert refusal(tmp_path / "flat").startswith(f"--data {tmp_path / 'flat'} holds no class folders; ")
    (tmp_path / "bare" / "cat").mkdir(parents=True)
    assert refusal(tmp_path / "bare").startswith("none of the 1 class folders in ")


def test_a_workload_trains_on_a_folder_and_says_so(picture_folder: Path, options: Options) -> None:
    workload = build("mlp", options(data=picture_folder, batch_size=3))
    batches = list(workload.batches)
    loss = workload.loss(workload.model, batches[0])
    loss.backward()
    assert loss.isfinite()
    assert batches[0][0].shape == (3, 1, 28, 28)
    assert workload.facts["data"].startswith("folder pictures: 5 pictures in 2 classes, read by ")
    # Two classes are fewer than ten: the model stays the one that is known under its name.
    assert workload.facts["classes"] == "10"
    assert workload.parameter_count == 669_706


def test_more_classes_than_the_model_has_give_it_a_larger_last_layer(
    tmp_path: Path, options: Options
) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}").mkdir()
        Image.new("L", (28, 28), number).save(tmp_path / f"{number:02}" / "1.png")
    workload = build("mlp", options(data=tmp_path, batch_size=12))
    assert workload.facts["classes"] == "12"
    # Two more outputs of 512 weights and a bias: 669,706 + 2 * 513.
    assert workload.parameter_count == 670_732
    assert workload.loss(workload.model, next(iter(workload.batches))).isfinite()


def test_synthetic_batches_are_distinct_and_labels_are_classes() -> None:
    batches = synthetic_batches(PictureFormat(4), 8, 3, 0, CPU, torch.float32)
    assert len(batches) == 4
    assert not torch.equal(batches[0][0], batches[1][0])
    assert all(labels.min() >= 0 and labels.max() < 3 for _, labels in batches)


def test_batches_larger_than_memory_are_refused(options: Options, sentence: Callable[..., str]) -> None:
    message = sentence(lambda: build("mlp", options(batch_size=10**12)), exit_code=3)
    # 4 batches of 10**12 * 784 values of 4 bytes = 1.25e16 bytes
    assert message.startswith("the batches alone would take 12,544,000.0 GB of memory and ")


def test_there_is_always_a_worker_and_one_core_is_left_to_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = []
    for cores in (1, 2, 4, 64):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: range(cores), raising=False)
        counts.append(worker_count())
    assert counts == [1, 1, 3, 8]
