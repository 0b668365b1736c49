"""An update that made parameters bad, done again as nearly as can be."""

from __future__ import annotations

from typing import Any

import torch

from anomprof.guarding.performance import Performance, repeat
from anomprof.sites import without_modes, without_overrides


class UpdateState:
    """The parameters of an optimizer and its state, after an update that spoilt some of them.

    What they were before it is not known: that would cost a copy of all of them in every step. But the
    gradients are still there, the rates are, and all that is finite is one update older than it was.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._groups = [dict(group) for group in optimizer.param_groups]
        self._parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._values = [(parameter, parameter.detach().clone()) for parameter in self._parameters]
        self._gradients = [
            (parameter.grad, parameter.grad.detach().clone())
            for parameter in self._parameters
            if parameter.grad is not None
        ]
        self._state = {
            parameter: {
                key: (value, value.detach().clone() if isinstance(value, torch.Tensor) else None)
                for key, value in state.items()
            }
            for parameter, state in optimizer.state.items()
            if isinstance(state, dict)
        }

    def go_back(self) -> None:
        """Makes everything finite again, and counts one update less."""
        with torch.no_grad(), without_modes(), without_overrides():
            for parameter in self._parameters:
                _without_bad(parameter)
            for state in self._optimizer.state.values():
                for key, value in list(state.items()) if isinstance(state, dict) else ():
                    if isinstance(value, torch.Tensor) and value.is_floating_point():
                        _without_bad(value)
                    if key == "step":
                        state[key] = value - 1

    def restore(self) -> None:
        """Puts everything back."""
        with torch.no_grad(), without_modes(), without_overrides():
            for parameter, value in self._values:
                parameter.data.copy_(value)
            for gradient, value in self._gradients:
                gradient.data.copy_(value)
            for parameter in [known for known in self._optimizer.state if known not in self._state]:
                del self._optimizer.state[parameter]
            for parameter, held in self._state.items():
                state = self._optimizer.state[parameter]
                state.clear()
                for key, (value, was) in held.items():
                    if was is not None:
                        value.data.copy_(was)
                    state[key] = value
            for group, options in zip(self._optimizer.param_groups, self._groups, strict=True):
                group.clear()
                group.update(options)


def repeat_update(performance: Performance, trip: Any) -> None:
    """Makes an optimizer's step again, from a state as near to the one it started from as is known."""
    state = UpdateState(trip.optimizer)
    try:
        state.go_back()
        performance.points = trip.points
        repeat(trip.optimizer.step, (), {})
    finally:
        state.restore()


def _without_bad(tensor: torch.Tensor) -> None:
    tensor.data.nan_to_num_(0.0, 0.0, 0.0)
