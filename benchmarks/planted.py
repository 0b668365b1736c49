"""A mode with a known cost: 5 % of the step is spent waiting."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from anomprof import Mode, Proof
from anomprof.modes.mode import Seen

SHARE = 0.05


class Delayed(Mode):
    """Makes every step 5 % longer than it was by itself."""

    name = "delayed"
    summary = "each step made 5 % longer"
    keeps_numbers = True

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Waits for 5 % of the time that the step took; busily, since sleeping is coarse."""
        began = time.perf_counter()
        yield
        now = time.perf_counter()
        until = now + SHARE * (now - began)
        while time.perf_counter() < until:
            pass

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Nothing can be seen of a wait; it is there by construction."""
        return Proof(True, "waits by construction")
