"""Fixtures for all tests."""

from collections.abc import Iterator

import pytest
import torch
import torch._dynamo  # cannot be imported twice: so before any test that puts sys.modules back


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tiny steps gain nothing from threads, and on a busy machine they wait long for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
