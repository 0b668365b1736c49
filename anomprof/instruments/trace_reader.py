"""Sums per op from a trace that ``torch.profiler`` exported: time, device time, memory, host syncs.

Reading the exported file costs about half of what torch's own tables cost, needs no torch, and also
serves traces that were taken elsewhere. How the parts of a trace are joined::

    thread   |--- aten::linear -------------------|        cpu_op events nest by time, per thread
                 |--- aten::addmm ------------|            self time = own time - time of the children
                    [memory]   |cudaLaunchKernel|          belong to the innermost op on their thread
                                   | correlation
    stream                         '--> |== kernel ==|     belongs to the op of its launch

A kernel whose launch is not in the trace is counted as unattributed and never spread over ops.
"External id" would be a shorter way from kernel to op, but points to wrong ops in real traces.

Formats: "Operator", "Kernel", "Memcpy", "Memset" and "Runtime" are what old versions of torch called
the categories "cpu_op", "kernel", "gpu_memcpy", "gpu_memset" and "cuda_runtime". Times are
microseconds: whole ones in old traces, with three decimals (true nanoseconds) in newer ones.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.record import OpRow

#: The row of what happened while no op ran on the thread.
OUTSIDE_OPS = "[outside ops]"

_OP_CATEGORIES = frozenset({"cpu_op", "operator"})
_DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_CALL_SUFFIXES = ("runtime", "driver")  # cuda_runtime, cuda_driver, xpu_runtime, ...

# The op below every ``.item()``, ``float(tensor)`` and ``bool(tensor)``.
_READ = "aten::_local_scalar_dense"
_SYNC_CALLS = frozenset(
    prefix + what
    for prefix in ("cuda", "hip")
    for what in ("StreamSynchronize", "DeviceSynchronize", "EventSynchronize")
)

# c10::DeviceType, as the traces number it. 6 is what ROCm builds write.
_CPU = 0
_DEVICE_TYPES = {_CPU: "cpu", 1: "cuda", 6: "cuda", 12: "xpu", 13: "mps"}

_Thread = tuple[Any, Any]


@dataclass(frozen=True)
class TraceSummary:
    """What one trace adds up to.

    Attributes:
        ops: One row per op, the most self time first.
        peak_memory_delta_bytes: The most by which memory in use rose above its level at the start
            of the trace. Frees of blocks that are older than the trace are not in it.
        step_seconds: Length of the ``ProfilerStep#`` ranges, or, where there are none, of the time
            from the first op or annotation to the end of the last.
        host_syncs: How often the host waited for the device (on a CPU: would have to wait).
        device_seconds: Time of all kernels, copies and fills; those that overlap are both counted.
        unattributed_device_seconds: The part of ``device_seconds`` whose launch is not in the trace.
        memory_device: What the bytes are counted on: the accelerator where the trace has
            allocations there, else ``"cpu"``.
    """

    ops: tuple[OpRow, ...]
    peak_memory_delta_bytes: int
    step_seconds: float
    host_syncs: int
    device_seconds: float
    unattributed_device_seconds: float
    memory_device: str = "cpu"


def read_trace(path: Path) -> TraceSummary:
    """Returns the sums of an exported trace, ``.json`` or ``.json.gz``.

    Raises:
        UserError: The file cannot be read or is no such trace.
    """
    return summarize(_events(path))


def summarize(events: Iterable[Mapping[str, Any]]) -> TraceSummary:
    """Returns the sums of the events of a trace, given in the order of the file."""
    trace = _Trace(events)
    sweep = _Sweep(trace)
    for thread in trace.threads.values():
        sweep.run(thread)
    rows = (
        OpRow(row.op, row.calls, row.self_ns / 1e9, row.device_ns / 1e9, row.memory_bytes)
        for row in sweep.rows.values()
    )
    return TraceSummary(
        ops=tuple(sorted(rows, key=lambda row: (-row.self_seconds, -row.device_seconds, row.op))),
        peak_memory_delta_bytes=trace.peak_bytes(),
        step_seconds=trace.step_ns() / 1e9,
        host_syncs=sweep.syncs + sum(op.waits or not trace.has_calls for op in sweep.reads),
        device_seconds=trace.device_ns / 1e9,
        unattributed_device_seconds=trace.unattributed_ns / 1e9,
        memory_device=_DEVICE_TYPES.get(trace.memory_type, f"device type {trace.memory_type}"),
    )


class _Op:
    """One call of an op."""

    __slots__ = ("children", "children_ns", "end", "name", "parent", "start", "waits")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name = name
        self.start = start
        self.end = end
        self.parent: _Op | None = None
        self.children = 0
        self.children_ns = 0
        self.waits = False

    def repeats_its_parent(self) -> bool:
        """Whether this is its parent under the same name, dispatched once more, as ``x * 2`` is."""
        return self.parent is not None and self.parent.name == self.name and self.parent.children == 1


@dataclass(frozen=True)
class _Moment:
    """Something at one point of time that belongs to the op running then."""

    at: int
    memory_bytes: int = 0
    device_ns: int = 0
    is_call: bool = False
    is_sync: bool = False


class _TimeLine:
    """The ops and moments of one thread, in the order of the file."""

    def __init__(self) -> None:
        self.ops: list[_Op] = []
        self.moments: list[_Moment] = []


class _Row:
    """An :class:`OpRow` while it is added up. Nanoseconds are whole numbers: sums stay exact."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.calls = self.self_ns = self.device_ns = self.memory_bytes = 0


class _Trace:
    """The events of a trace, sorted by kind and thread, times in whole nanoseconds."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self.threads: dict[_Thread, _TimeLine] = {}
        self.device_ns = 0
        self.unattributed_ns = 0
        self.has_calls = False
        # A nesting op may seem to end this much after its parent: by how much times are rounded.
        self.slack_ns = 1
        self._steps: list[tuple[int, int]] = []
        self._annotations: list[tuple[int, int]] = []
        calls: list[tuple[_Thread, int, str, Any]] = []
        device_work: dict[Any, int] = {}
        memory: list[tuple[_Thread, int, int, int]] = []
        for event in events:
            phase = event.get("ph")
            if phase not in ("X", "i", "I"):
                continue
            category = str(event.get("cat", "")).lower()
            name = str(event.get("name", ""))
            thread = (event.get("pid"), event.get("tid"))
            args = event.get("args") or {}
            if name == "[memory]":
                self._measure_rounding(event["ts"])
                type_ = int(args.get("Device Type", _CPU))
                memory.append((thread, _ns(event["ts"]), int(args["Bytes"]), type_))
            if phase != "X":
                continue
            start = _ns(event["ts"])
            duration = _ns(event.get("dur", 0))
            if category in _OP_CATEGORIES:
                self._measure_rounding(event["ts"])
                self._line(thread).ops.append(_Op(name, start, start + duration))
            elif category in _DEVICE_CATEGORIES:
                self.device_ns += duration
                correlation = args.get("correlation") or None  # 0 is what "unknown" looks like
                device_work[correlation] = device_work.get(correlation, 0) + duration
            elif category.endswith(_CALL_SUFFIXES):
                calls.append((thread, start, name, args.get("correlation")))
            elif category == "user_annotation":
                ranges = self._steps if name.startswith("ProfilerStep#") else self._annotations
                ranges.append((start, start + duration))
        self._add_calls(calls, device_work)
        self._add_memory(memory)

    def step_ns(self) -> int:
        if self._steps:
            return sum(end - start for start, end in self._steps)
        ranges = self._annotations + [(op.start, op.end) for op in self._ops()]
        return max(end for _, end in ranges) - min(start for start, _ in ranges) if ranges else 0

    def peak_bytes(self) -> int:
        running = peak = 0
        for _, size in self._memory:
            running += size
            peak = max(peak, running)
        return peak

    def _add_calls(self, calls: list[tuple[_Thread, int, str, Any]], device_work: dict[Any, int]) -> None:
        self.has_calls = bool(calls)
        # The profiler itself waits for the device when it stops, and so does whoever times a step:
        # a wait after the last op is not the step's own.
        last_end = max((op.end for op in self._ops()), default=0)
        for thread, start, name, correlation in calls:
            launched = device_work.pop(correlation, 0) if correlation else 0
            is_sync = name in _SYNC_CALLS and start <= last_end
            moment = _Moment(start, device_ns=launched, is_call=True, is_sync=is_sync)
            self._line(thread).moments.append(moment)
        self.unattributed_ns = sum(device_work.values())

    def _add_memory(self, memory: list[tuple[_Thread, int, int, int]]) -> None:
        moved: dict[int, int] = {}
        for _, _, size, type_ in memory:
            moved[type_] = moved.get(type_, 0) + abs(size)
        accelerators = [type_ for type_ in moved if type_ != _CPU]
        self.memory_type = max(accelerators, key=lambda type_: moved[type_], default=_CPU)
        self._memory: list[tuple[int, int]] = []
        for thread, at, size, type_ in memory:
            if type_ == self.memory_type:
                self._line(thread).moments.append(_Moment(at, memory_bytes=size))
                self._memory.append((at, size))
        # Stable, so that what happened within one tick keeps the order of the file.
        self._memory.sort(key=lambda entry: entry[0])

    def _line(self, thread: _Thread) -> _TimeLine:
        return self.threads.setdefault(thread, _TimeLine())

    def _ops(self) -> Iterable[_Op]:
        return (op for line in self.threads.values() for op in line.ops)

    def _measure_rounding(self, microseconds: float) -> None:
        # Whole microseconds: start and length were both cut off. Otherwise what a double cannot hold.
        rounding = 1000.0 if isinstance(microseconds, int) else 2000 * math.ulp(microseconds)
        self.slack_ns = max(self.slack_ns, math.ceil(rounding))


class _Sweep:
    """Walks along each thread's time and adds everything to the op that is innermost there."""

    def __init__(self, trace: _Trace) -> None:
        self.rows: dict[str, _Row] = {}
        self.syncs = 0
        self.reads: list[_Op] = []
        self._slack_ns = trace.slack_ns

    def run(self, line: _TimeLine) -> None:
        # At equal starts: the longer op first, as it is the parent; ops before moments.
        entries: list[tuple[int, int, _Op | _Moment]] = [(op.start, -op.end, op) for op in line.ops]
        entries += [(moment.at, 1, moment) for moment in line.moments]
        entries.sort(key=lambda entry: entry[:2])
        stack: list[_Op] = []
        for _, _, entry in entries:
            if isinstance(entry, _Op):
                self._enter(entry, stack)
            else:
                self._place(entry, stack)
        for op in line.ops:
            row = self._row(op.name)
            # torch's own tables count these two as one call as well.
            row.calls += not op.repeats_its_parent()
            row.self_ns += max(op.end - op.start - op.children_ns, 0)
            if op.name == _READ:
                self.reads.append(op)

    def _enter(self, op: _Op, stack: list[_Op]) -> None:
        while stack and not self._contains(stack[-1], op):
            stack.pop()
        if stack:
            op.parent = stack[-1]
            op.parent.children += 1
            op.parent.children_ns += min(op.end, op.parent.end) - op.start
        stack.append(op)

    def _contains(self, outer: _Op, inner: _Op) -> bool:
        # An op that starts in the very tick in which another ended follows it. The slack is for
        # ends only: a child may seem to outlast its parent by a rounding error.
        starts_inside = inner.start < outer.end or inner.start == outer.start
        return starts_inside and inner.end <= outer.end + self._slack_ns

    def _place(self, moment: _Moment, stack: list[_Op]) -> None:
        while stack and stack[-1].end < moment.at:
            stack.pop()
        if moment.memory_bytes or moment.device_ns:
            row = self._row(stack[-1].name if stack else OUTSIDE_OPS)
            row.memory_bytes += moment.memory_bytes
            row.device_ns += moment.device_ns
        if moment.is_call:
            # A read on an accelerator copies and waits: one sync, counted at the read. A read of a
            # CPU tensor beside an accelerator makes no call and waits for nothing.
            reads = [op for op in stack if op.name == _READ]
            for op in reads:
                op.waits = True
            self.syncs += moment.is_sync and not reads

    def _row(self, op: str) -> _Row:
        return self.rows.setdefault(op, _Row(op))


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _events(path: Path) -> list[Mapping[str, Any]]:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        trace = orjson.loads(data)
    except (OSError, EOFError, zlib.error, orjson.JSONDecodeError) as error:
        raise UserError(f"{path} cannot be read as a profiler trace ({error})", COULD_NOT_MEASURE) from error
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise UserError(
            f"{path} holds no traceEvents; give a file that torch.profiler's export_chrome_trace wrote",
            COULD_NOT_MEASURE,
        )
    return events
