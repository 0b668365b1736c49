"""Several modes at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from anomprof.errors import UserError
from anomprof.modes.mode import Mode, NoScaler, Proof, Scaler, Seen
from anomprof.workload import Workload


class Composition(Mode):
    """The parts of an ``a+b``, in the order of their ranks whatever order was typed.

    Raises:
        UserError: Two parts of one family, such as two precisions.
    """

    def __init__(self, name: str, parts: Sequence[Mode]) -> None:
        super().__init__(parts[0].options)
        self.parts = sorted(parts, key=lambda part: part.rank)
        families: dict[str, str] = {}
        for part in self.parts:
            other = families.setdefault(part.family or part.name, part.name)
            if part.family == "baseline":
                raise UserError(f"{name}: {part.name} is the absence of all modes; leave it out of the sum")
            if other != part.name or sum(p.name == part.name for p in parts) > 1:
                raise UserError(f"{name}: {other} and {part.name} cannot be combined; name one of them")
        self.name = name
        self.summary = f"{' and '.join(part.name for part in self.parts)} together"
        self.keeps_numbers = all(part.keeps_numbers for part in parts)
        self.own_process = any(part.own_process for part in parts)
        self.holds_profiler = any(part.holds_profiler for part in parts)
        self.observable = all(part.observable for part in parts)

    @property
    def watched(self) -> bool:
        """Whether the untimed, watched pass is on; shared by all parts."""
        return self.parts[0].watched

    @watched.setter
    def watched(self, value: bool) -> None:
        for part in getattr(self, "parts", ()):
            part.watched = value

    @property
    def scaler(self) -> Scaler:
        """The scaler of the part that has one."""
        scalers = [part.scaler for part in self.parts if not isinstance(part.scaler, NoScaler)]
        return scalers[0] if scalers else NoScaler()

    @scaler.setter
    def scaler(self, value: Scaler) -> None:
        """Ignored: scalers belong to the parts."""

    def unavailable(self, device: torch.device) -> str | None:
        """Returns the first part's reason."""
        return next((reason for part in self.parts if (reason := part.unavailable(device))), None)

    def unfit(self, workload: Workload) -> str | None:
        """Returns the first part's reason."""
        return next((reason for part in self.parts if (reason := part.unfit(workload))), None)

    @contextlib.contextmanager
    def turn(self, workload: Workload) -> Iterator[None]:
        """Enters every part's turn."""
        with contextlib.ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.turn(workload))
            yield

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Enters every part's step."""
        with contextlib.ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.step())
            yield

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """Enters every part's forward."""
        with contextlib.ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.forward())
            yield

    def gradients(self, parameters: Sequence[torch.Tensor]) -> None:
        """Lets every part act."""
        for part in self.parts:
            part.gradients(parameters)

    def figures(self) -> Mapping[str, Any]:
        """Joins the figures of all parts."""
        return {key: value for part in self.parts for key, value in part.figures().items()}

    def settled(self) -> bool:
        """Whether every part has seen enough."""
        return all(part.settled() for part in self.parts)

    def turn_figures(self) -> Mapping[str, float]:
        """Joins the counts of all parts."""
        return {key: value for part in self.parts for key, value in part.turn_figures().items()}

    def proof(self, seen: Seen, baseline: Seen) -> Proof:
        """Applied only if every part was."""
        proofs = [part.proof(seen, baseline) for part in self.parts]
        return Proof(all(proof.applied for proof in proofs), "; ".join(proof.text for proof in proofs))
