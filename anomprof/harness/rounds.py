"""Runs a plan's modes over a workload's steps, in one process, and writes what was measured.

for every mode:            evidence      proof, operator rows, memory (untimed passes)
until narrow or spent:     a round       every mode that needs it, in shuffled order
    for every mode:        a turn        restore, one settling step, timed steps, digests
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from anomprof.environment.memory_cap import memory_capped
from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.harness.bench import Bench
from anomprof.harness.evidence import Evidence, gather
from anomprof.harness.plan import Plan
from anomprof.harness.schedule import Schedule
from anomprof.instruments.host_sampler import HostSampler
from anomprof.instruments.telemetry import SHORTEST_WINDOW_SECONDS, Telemetry, energy_per_step, open_telemetry
from anomprof.modes import make
from anomprof.modes.mode import Mode, ModeOptions, Proof, Seen
from anomprof.record import RecordWriter, Step, Turn
from anomprof.results import BASELINE, live_slowdowns
from anomprof.stats import Interval
from anomprof.userfile import describe, raised
from anomprof.workload import Workload

# A turn's timed steps should last no longer than this, and shorter where the budget is small for the
# number of modes: many short turns beat few long ones, since the machine changes between turns.
_LONGEST_TURN_SECONDS = 0.5
_WANTED_ROUNDS = 10

# Where there is an energy counter, turns are long enough for it, faster modes included.
_ENERGY_TURN_SECONDS = 1.5 * SHORTEST_WINDOW_SECONDS

_MOST_STEPS = 100

# What a turn costs in all for each second of baseline steps in it: most modes are slower, there is a
# settling step, and every second mode brings a turn of the baseline with it.
_COST_OF_A_TURN = 3.0

# Steps are written to the record this often within a turn (and at its end), between two steps.
_WRITE_EVERY_SECONDS = 0.5


@dataclass
class State:
    """What a progress display may show.

    Attributes:
        doing: What happens now, in words.
        round: 1-based; 0 before the first.
        mode: The mode whose turn it is.
        slowdowns: Current estimates.
        seconds_used: Of the budget.
    """

    budget_seconds: float
    modes: Sequence[str]
    doing: str = ""
    round: int = 0
    mode: str = ""
    slowdowns: Mapping[str, Interval] = field(default_factory=dict)
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    seconds_used: float = 0.0


class Listener(Protocol):
    """Is told of the progress. Called between turns only: no display runs beside a timed step."""

    def show(self, state: State) -> None:
        """Shows the state."""


class Harness:
    """Measures one workload in this process.

    Args:
        plan: What to measure.
        workload: Built from the plan.
        writer: Takes everything measured.
        listener: Shows the progress.
        modes: The plan's modes that this process runs, the baseline first.
        described: Those of them whose facts this process writes. Of several processes that run a mode
            the first does; each one says so where it could not run it.
        budget_seconds: This process's share.
    """

    def __init__(
        self,
        plan: Plan,
        workload: Workload,
        writer: RecordWriter,
        listener: Listener,
        modes: Sequence[str],
        described: Sequence[str],
        budget_seconds: float,
    ) -> None:
        self._plan = plan
        self._described = set(described)
        self._workload = workload
        self._writer = writer
        self._listener = listener
        self._state = State(budget_seconds, tuple(modes))
        self._schedule = Schedule(modes, budget_seconds, plan.seed + 7919 * writer.process)
        self._modes: dict[str, Mode] = {}
        self._turns: list[Turn] = []
        self._began = time.perf_counter()
        self._host = HostSampler()
        self._facts: dict[str, dict[str, Any]] = {}

    def run(self) -> str:
        """Measures until every interval is narrow or the budget is spent.

        Returns:
            Why it ended.

        Raises:
            UserError: The baseline itself cannot be measured.
        """
        options = ModeOptions(self._plan.clip_norm, self._plan.clip_value)
        every = {name: make(name, options) for name in self._state.modes}
        with memory_capped(self._device()):
            self._show("warming up")
            with self._explained("the workload's training step"):
                bench = Bench(self._workload, every[BASELINE])
            telemetry = open_telemetry(bench.device)
            steps = self._plan.steps or self._steps_per_turn(bench.step_seconds, telemetry)
            self._writer.fact("steps_per_turn", steps)
            self._writer.fact("settling_steps", bench.settling_steps)
            self._writer.fact(
                "telemetry",
                {
                    "unavailable_because": telemetry.unavailable_because,
                    "name": telemetry.name,
                    "notes": list(telemetry.notes),
                },
            )
            # The garbage collector runs before each turn; what exists now it need not visit.
            gc.freeze()
            telemetry.start()
            try:
                self._prove(bench, every, steps)
                if any(mode.own_process for mode in every.values()):
                    # Compiling may take longer than the whole budget, which is for measuring.
                    self._began = time.perf_counter()
                return self._rounds(bench, steps, telemetry)
            finally:
                telemetry.stop()
                self._writer.samples(telemetry.drain())
                self._note_sitting_out()
                gc.unfreeze()
                bench.restore()

    def _steps_per_turn(self, step_seconds: float, telemetry: Telemetry) -> int:
        turns = _COST_OF_A_TURN * len(self._state.modes) * _WANTED_ROUNDS
        turn_seconds = min(_LONGEST_TURN_SECONDS, self._state.budget_seconds / turns)
        if telemetry.energy_joules() is not None:
            turn_seconds = max(turn_seconds, _ENERGY_TURN_SECONDS)
        return max(1, min(_MOST_STEPS, round(turn_seconds / step_seconds)))

    def _device(self) -> torch.device:
        return next(self._workload.model.parameters()).device

    def _prove(self, bench: Bench, every: Mapping[str, Mode], steps: int) -> None:
        """Gathers every mode's evidence; modes that cannot run here are noted with the reason."""
        baseline_seen = Seen()
        for name, mode in every.items():
            self._show("proof and memory", name)
            try:
                reason = mode.unavailable(bench.device) or mode.unfit(self._workload)
                if reason is None:
                    evidence = gather(bench, name, mode, tuple(every), steps + bench.settling_steps)
                    if name == BASELINE:
                        baseline_seen = evidence.seen
                    self._prove_one(name, mode, evidence, baseline_seen)
            except UserError:
                raise
            except (Exception, SystemExit) as error:
                if name == BASELINE:
                    raise self._sentence(error, "the workload's training step") from error
                reason = _failure(error)
                _free(bench)
            if reason is not None:
                self._unavailable(name, mode, str(reason))

    def _prove_one(self, name: str, mode: Mode, evidence: Evidence, baseline_seen: Seen) -> None:
        proof = mode.proof(evidence.seen, baseline_seen)
        if not isinstance(proof, Proof):
            raise TypeError(f"Mode.proof returned {type(proof).__name__}; return an anomprof.Proof")
        self._modes[name] = mode
        self._facts[name] = {
            "available": True,
            "summary": mode.summary,
            "keeps_numbers": mode.keeps_numbers,
            "applied": proof.applied,
            "proof": proof.text,
            "figures": dict(evidence.seen.figures),
            "profiled_as": evidence.profiled_as,
            "first_step_seconds": evidence.first_step_seconds,
        }
        if name in self._described:
            self._writer.mode(name, self._facts[name])
        self._writer.readings(evidence.readings)

    def _unavailable(self, name: str, mode: Mode, reason: str) -> None:
        self._schedule.drop(name)
        self._state.unavailable = {**self._state.unavailable, name: reason}
        self._modes.pop(name, None)
        self._facts[name] = {"available": False, "summary": mode.summary, "reason": reason}
        self._writer.mode(name, self._facts[name])

    def _rounds(self, bench: Bench, steps: int, telemetry: Telemetry) -> str:
        number = 0
        while True:
            decision = self._schedule.next_round(self._state.slowdowns, self._seconds_left())
            if not decision.modes:
                return decision.stop_reason
            self._state.round = number + 1
            for position, name in enumerate(decision.modes):
                if name not in self._modes:  # failed earlier in this round
                    continue
                self._show("measuring", name)
                began = time.perf_counter()
                turn = self._try_turn(bench, name, number, position, steps, telemetry)
                if turn is not None:
                    self._turns.append(turn)
                    self._schedule.took_turn(name, time.perf_counter() - began)
            self._state.slowdowns = live_slowdowns(self._turns)
            number += 1

    def _try_turn(
        self, bench: Bench, name: str, round_: int, position: int, steps: int, telemetry: Telemetry
    ) -> Turn | None:
        try:
            return self._turn(bench, name, round_, position, steps, telemetry)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            if name == BASELINE:
                raise self._sentence(error, f"the baseline in round {round_ + 1}") from error
            self._unavailable(name, self._modes[name], f"failed in round {round_ + 1}: {_failure(error)}")
            _free(bench)
            return None

    def _turn(
        self, bench: Bench, name: str, round_: int, position: int, steps: int, telemetry: Telemetry
    ) -> Turn:
        mode = self._modes[name]
        self._writer.samples([*self._host.sample(), *telemetry.drain()])
        gc.collect()
        turn = Turn(self._writer.process, round_, position, name, time.perf_counter())
        turn_id = self._writer.begin_turn(turn)
        taken: list[Step] = []
        with bench.turn(mode) as batches:
            for _ in range(bench.settling_steps):
                settled = bench.step(mode, next(batches))
            joules, window_began = telemetry.energy_joules(), time.perf_counter()
            written = 0
            for number in range(steps):
                waiting = time.perf_counter()
                batch = next(batches)
                bench.finish()  # the batch has arrived: its way to the device is not part of the step
                started = time.perf_counter()
                outcome = bench.step(mode, batch)
                taken.append(Step(number, started, started - waiting, outcome.seconds, outcome.edge_seconds))
                if time.perf_counter() - waiting > _WRITE_EVERY_SECONDS:
                    written = self._write_steps(turn_id, taken, written)
            window_seconds = time.perf_counter() - window_began
            energy, refused = energy_per_step(joules, telemetry.energy_joules(), steps, window_seconds)
            if telemetry.unavailable_because:
                refused = telemetry.unavailable_because
            counted = dict(mode.turn_figures())
        facts = {
            "final_loss": float(outcome.loss),
            "settle_seconds": settled.seconds,
            "counted": counted,
            "energy_joules_per_step": energy,
            "energy_refused": refused,
            **bench.digests(),
        }
        self._write_steps(turn_id, taken, written)
        self._writer.end_turn(turn_id, facts)
        return Turn(turn.process, round_, position, name, turn.started, tuple(taken), facts)

    def _write_steps(self, turn_id: int, taken: Sequence[Step], written: int) -> int:
        for step in taken[written:]:
            self._writer.step(turn_id, step)
        return len(taken)

    def _note_sitting_out(self) -> None:
        for name, facts in self._facts.items():
            reason = self._schedule.sits_out(name, self._state.slowdowns)
            if reason and facts["available"] and name in self._described:
                self._writer.mode(name, {**facts, "sat_out": reason})

    def _seconds_left(self) -> float:
        return self._state.budget_seconds - (time.perf_counter() - self._began)

    def _show(self, doing: str, mode: str = "") -> None:
        self._state.doing, self._state.mode = doing, mode
        self._state.seconds_used = time.perf_counter() - self._began
        self._listener.show(self._state)

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise self._sentence(error, what) from error

    def _sentence(self, error: BaseException, what: str) -> UserError:
        if is_out_of_memory(error):
            batch = self._workload.samples_per_batch
            size = f" with {batch} samples a batch" if batch else ""
            return UserError(
                f"{self._workload.name}{size} does not fit into the memory of {self._device()}; "
                "choose a smaller --batch-size, or smaller pictures or sequences",
                COULD_NOT_MEASURE,
            )
        return raised(error, what)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; on a CPU torch says so in a plain RuntimeError."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in text or "not enough memory" in text
    )


def _failure(error: BaseException) -> str:
    if isinstance(error, RuntimeError) and "returned nan values in its" in str(error):
        return f"anomaly mode found a NaN and stopped, as it should: {describe(error)}; mend that first"
    return "it does not fit into memory" if is_out_of_memory(error) else describe(error)


def _free(bench: Bench) -> None:
    """Lets go of what a failed step left behind, above all its gradients."""
    bench.restore()
    gc.collect()
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()
