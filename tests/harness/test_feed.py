from collections import namedtuple

import pytest
import torch

from anomprof.errors import UserError
from anomprof.harness.feed import Feed, move

CPU = torch.device("cpu")


def first(feed, count):
    return [int(batch) for batch, _ in zip(feed.start(), range(count), strict=False)]


def test_a_list_starts_over_in_every_turn_and_where_it_ends():
    feed = Feed([torch.tensor(n) for n in range(3)], CPU)
    assert first(feed, 5) == [0, 1, 2, 0, 1]
    assert first(feed, 2) == [0, 1]


def test_containers_keep_their_types():
    Pair = namedtuple("Pair", "x y")
    batch = Pair({"a": torch.ones(1)}, [torch.ones(1), "label", 3])
    moved = move(batch, torch.device("meta"))
    assert type(moved) is Pair
    assert moved.x["a"].device.type == "meta"
    assert moved.y[1:] == ["label", 3]


def test_no_batch_at_all_is_one_sentence():
    with pytest.raises(UserError, match="batches are empty"):
        next(Feed([], CPU).start())


def test_data_that_raise_are_one_sentence_with_the_place():
    class Broken:
        def __iter__(self):
            yield torch.ones(1)
            raise OSError("disk gone")

    batches = Feed(Broken(), CPU).start()
    next(batches)
    with pytest.raises(UserError, match=r"fetching batch 1 of .* failed: OSError: disk gone \(test_feed.py:"):
        next(batches)
