from __future__ import annotations

import gc
import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity

from anomprof.errors import UserError
from anomprof.instruments.trace_reader import OUTSIDE_OPS, OpRow, TraceSummary, read_trace, summarize

DATA = Path(__file__).parents[1] / "data"

HALF = 0.5  # makes a time stamp fractional, as in new traces


def op(name: str, ts: float, dur: float, tid: int = 1, cat: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur}


def call(
    name: str, ts: float, correlation: int = 0, tid: int = 1, cat: str = "cuda_runtime"
) -> dict[str, Any]:
    return op(name, ts, 1, tid, cat) | {"args": {"correlation": correlation}}


def kernel(dur: float, correlation: int, cat: str = "kernel") -> dict[str, Any]:
    return op("kernel", 10_000, dur, tid=99, cat=cat) | {"args": {"correlation": correlation}}


def memory(ts: float, size: int, tid: int = 1, device_type: int = 0) -> dict[str, Any]:
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 7,
        "tid": tid,
        "ts": ts,
        "args": {"Bytes": size, "Addr": 1, "Device Type": device_type, "Total Allocated": 0},
    }


def row(summary: TraceSummary, name: str) -> OpRow:
    (found,) = [row for row in summary.ops if row.op == name]
    return found


def microseconds(summary: TraceSummary) -> dict[str, float]:
    return {row.op: round(row.self_seconds * 1e6, 3) for row in summary.ops}


def test_self_time_is_own_time_without_the_time_of_the_inner_ops() -> None:
    # linear 0..100 holds t 10..20 and addmm 30..90, which holds copy_ 40..50.
    # linear 100-10-60 = 30; t 10; addmm 60-10 = 50; copy_ 10; together 100.
    summary = summarize([op("linear", 0, 100), op("t", 10, 10), op("addmm", 30, 60), op("copy_", 40, 10)])
    assert microseconds(summary) == {"linear": 30, "t": 10, "addmm": 50, "copy_": 10}
    assert summary.step_seconds == pytest.approx(100e-6)


def test_the_order_of_the_file_does_not_matter() -> None:
    events = [op("linear", 0, 100), op("t", 10, 10), op("addmm", 30, 60), op("copy_", 40, 10)]
    assert summarize(events[::-1]) == summarize(events)


def test_ops_of_other_threads_are_not_inner_ops() -> None:
    summary = summarize([op("a", 0, 100, tid=1), op("b", 10, 10, tid=2)])
    assert microseconds(summary) == {"a": 100, "b": 10}


@pytest.mark.parametrize("shift", [0, HALF])
def test_an_op_that_starts_when_another_ends_follows_it(shift: float) -> None:
    # outer 0..100 holds first 10..30, second 30..50 and third 50..100, which ends with its parent.
    # outer 100-20-20-50 = 10.
    events = [op("outer", 0, 100), op("first", 10, 20), op("second", 30, 20), op("third", 50, 50)]
    for event in events:
        event["ts"] += shift
    assert microseconds(summarize(events)) == {"outer": 10, "first": 20, "second": 20, "third": 50}


def test_an_op_that_starts_with_its_parent_is_inside_it() -> None:
    # Listed first, yet the longer one is the parent: 100-40 = 60.
    assert microseconds(summarize([op("inner", 0, 40), op("outer", 0, 100)])) == {"outer": 60, "inner": 40}


def test_a_child_that_outlasts_its_parent_by_a_rounding_error_is_still_inside() -> None:
    # Whole microseconds, cut off: the parent ran 5.9..10.8 (5, length 4), the child 6.0..10.7 (6, length 4).
    # Of the child 6..9 lies in the parent 5..9: 4-3 = 1.
    assert microseconds(summarize([op("parent", 5, 4), op("child", 6, 4)])) == {"parent": 1, "child": 4}


def test_ops_that_overlap_without_nesting_take_nothing_from_each_other() -> None:
    # A control for the rounding above: 10 microseconds are no rounding error.
    assert microseconds(summarize([op("a", 0, 50), op("b", 40, 20)])) == {"a": 50, "b": 20}


def test_an_op_that_is_only_dispatched_once_more_is_one_call() -> None:
    # 100-40 = 60 of the outer and 40 of the inner call make 100.
    summary = summarize([op("mul", 0, 100), op("mul", 10, 40)])
    assert row(summary, "mul").calls == 1
    assert microseconds(summary) == {"mul": 100}


def test_an_op_that_calls_itself_among_other_ops_is_two_calls() -> None:
    summary = summarize([op("mul", 0, 100), op("mul", 10, 40), op("copy_", 60, 10)])
    assert row(summary, "mul").calls == 2
    assert microseconds(summary) == {"mul": 90, "copy_": 10}


def test_annotations_and_python_frames_are_no_ops() -> None:
    events = [
        op("Optimizer.step", 0, 90, cat="user_annotation"),
        op("f", 0, 90, cat="python_function"),
        op("add", 10, 5),
    ]
    summary = summarize(events)
    assert [row.op for row in summary.ops] == ["add"]
    assert summary.step_seconds == pytest.approx(90e-6)


def test_profiler_step_ranges_give_the_length_of_the_step() -> None:
    steps = [op(f"ProfilerStep#{n}", 100 * n, 60, cat="user_annotation") for n in (1, 2)]
    assert summarize([*steps, op("add", 0, 5)]).step_seconds == pytest.approx(120e-6)


def test_memory_belongs_to_the_innermost_op_of_the_same_thread() -> None:
    events = [
        op("outer", 0, 100),
        op("empty", 10, 10),
        op("other", 0, 100, tid=2),
        memory(15, 400),  # empty
        memory(30, 64),  # outer
        memory(60, -64),  # outer
        memory(50, 8, tid=2),  # other
        memory(150, -400),  # after every op
    ]
    bytes_of = {row.op: row.memory_bytes for row in summarize(events).ops}
    assert bytes_of == {"empty": 400, "outer": 0, "other": 8, OUTSIDE_OPS: -400}


def test_the_peak_is_the_largest_running_sum_over_all_threads() -> None:
    # In time order: 100, 150 (thread 2), 50, 90 -> 150, whatever the order of the file.
    events = [memory(10, 100), memory(30, -100), memory(40, 40), memory(20, 50, tid=2)]
    assert summarize(events).peak_memory_delta_bytes == 150


def test_a_trace_that_only_frees_older_blocks_has_no_peak() -> None:
    assert summarize([memory(10, -100), memory(20, 60)]).peak_memory_delta_bytes == 0


def test_memory_of_the_accelerator_counts_where_there_is_one() -> None:
    events = [op("randn", 0, 100), memory(10, 10_000), memory(20, 512, device_type=1)]
    summary = summarize(events)
    assert (summary.memory_device, summary.peak_memory_delta_bytes) == ("cuda", 512)
    assert row(summary, "randn").memory_bytes == 512
    assert summarize(events[:2]).memory_device == "cpu"


def test_kernels_belong_to_the_innermost_op_at_their_launch() -> None:
    # The kernels run long after the ops have ended: only their launches tell.
    events = [
        op("linear", 0, 100),
        op("addmm", 20, 50),
        call("cudaLaunchKernel", 30, 11),
        call("cudaMemcpyAsync", 80, 12),
        call("cuLaunchKernel", 200, 13, cat="cuda_driver"),
        kernel(5, 11),
        kernel(3, 11),  # one launch, two kernels: a graph
        kernel(7, 12, cat="gpu_memcpy"),
        kernel(2, 13),
    ]
    summary = summarize(events)
    device = {row.op: round(row.device_seconds * 1e6, 3) for row in summary.ops}
    assert device == {"addmm": 8, "linear": 7, OUTSIDE_OPS: 2}
    assert summary.device_seconds == pytest.approx(17e-6)
    assert summary.unattributed_device_seconds == 0


def test_device_time_without_a_launch_is_never_spread() -> None:
    events = [op("mm", 0, 100), call("cudaLaunchKernel", 10, 1), kernel(5, 1), kernel(90, 2), kernel(4, 0)]
    summary = summarize(events)
    assert row(summary, "mm").device_seconds == pytest.approx(5e-6)
    assert summary.device_seconds == pytest.approx(99e-6)
    assert summary.unattributed_device_seconds == pytest.approx(94e-6)


def test_a_read_on_an_accelerator_is_one_sync() -> None:
    # The read copies and waits: one. A wait by hand: two. A launch waits for nothing.
    read = "aten::_local_scalar_dense"
    events = [
        op(read, 0, 20),
        call("cudaMemcpyAsync", 5),
        call("cudaStreamSynchronize", 10),
        call("cudaDeviceSynchronize", 50),
        call("cudaLaunchKernel", 60),
        op("add", 70, 5),
    ]
    assert summarize(events).host_syncs == 2


def test_a_read_of_a_cpu_tensor_beside_an_accelerator_is_no_sync() -> None:
    read = "aten::_local_scalar_dense"
    assert summarize([op(read, 0, 20), op("add", 30, 20), call("cudaLaunchKernel", 40)]).host_syncs == 0
    # A control: on a CPU alone, every read would wait if there were a device.
    assert summarize([op(read, 0, 20), op("add", 30, 20)]).host_syncs == 1


def test_the_wait_that_ends_the_profile_is_not_the_steps_own() -> None:
    assert summarize([op("add", 0, 20), call("cudaDeviceSynchronize", 30)]).host_syncs == 0


def test_categories_of_old_traces_are_understood() -> None:
    events = [
        op("mm", 0, 100, cat="Operator"),
        call("cudaLaunchKernel", 9, 1, cat="Runtime"),
        kernel(5, 1, cat="Kernel"),
    ]
    assert row(summarize(events), "mm").device_seconds == pytest.approx(5e-6)


def test_an_empty_trace_sums_to_nothing() -> None:
    assert summarize([]) == TraceSummary((), 0, 0.0, 0, 0.0, 0.0)


def test_plain_and_compressed_files_give_the_same(tmp_path: Path) -> None:
    text = orjson.dumps({"traceEvents": [op("mm", 0, 10)]})
    (tmp_path / "plain.json").write_bytes(text)
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(text))
    assert read_trace(tmp_path / "plain.json") == read_trace(tmp_path / "packed.json.gz")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"other": 1}', b"3", gzip.compress(b'{"traceEvents": []}')[:-9], b"\x1f\x8bnonsense"],
)
def test_a_broken_file_is_named_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"broken\.json"):
        read_trace(path)


def test_reading_a_trace_loads_no_torch() -> None:
    code = "import sys, anomprof.instruments.trace_reader; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


def test_a_missing_file_is_named_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.json"):
        read_trace(tmp_path / "absent.json")


# From ops_summary.csv of the project that the traces come from (see data/README.md): microseconds of
# the kernels launched directly by each op, the sum over all its calls.
H100 = {
    "aten::addmm": 197.598,
    "aten::_flash_attention_forward": 37.408,
    "aten::native_layer_norm": 30.912,
    "aten::add": 14.753,
    "aten::index_select": 9.824,
    "aten::gelu": 9.599,
    "aten::all": 3.648,
    "aten::_local_scalar_dense": 2.240,  # its only device work is a copy
    "aten::eq": 1.760,
    "aten::add_": 1.696,
}
MI300X = {
    "aten::native_layer_norm_backward": 171.446,
    "aten::native_batch_norm": 104.536,
    "aten::native_group_norm_backward": 100.284,
    "aten::native_layer_norm": 83.000,
    "aten::native_group_norm": 80.708,
    "aten::miopen_batch_norm": 78.422,
    "aten::_fused_rms_norm_backward": 66.768,
    "aten::add_": 63.429,
    "aten::native_batch_norm_backward": 53.795,
    "aten::mean": 31.323,
    "aten::miopen_batch_norm_backward": 28.718,
    "aten::_fused_rms_norm": 27.236,
    "aten::sum": 25.992,
    "aten::copy_": 20.665,
    "aten::fill_": 17.620,
    "aten::normal_": 13.376,
    "aten::mse_loss_backward": 13.339,
    "aten::mse_loss": 11.333,
}


@pytest.mark.parametrize(
    ("name", "expected", "without"),
    [
        ("bert_small_infer_h100", H100, ()),
        ("normalization_train_mi300x", MI300X, ("gpu_memset",)),  # the source's sums count kernels only
    ],
)
def test_device_time_per_op_agrees_with_another_projects_sums(
    name: str, expected: dict[str, float], without: tuple[str, ...]
) -> None:
    events = orjson.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))["traceEvents"]
    summary = summarize(event for event in events if event["cat"] not in without)
    found = {row.op: row.device_seconds * 1e6 for row in summary.ops if row.device_seconds}
    assert found == pytest.approx(expected, abs=0.02)
    assert summary.device_seconds * 1e6 == pytest.approx(sum(expected.values()), abs=0.2)
    assert summary.unattributed_device_seconds == 0


def test_fills_and_copies_are_device_time_too() -> None:
    # Straight from the file: every kernel, and the five fills that the table above leaves out.
    path = DATA / "normalization_train_mi300x.json.gz"
    events = orjson.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    fills = sum(event["dur"] for event in events if event["cat"] == "gpu_memset")
    kernels = sum(event["dur"] for event in events if event["cat"] == "kernel")
    assert fills > 0
    assert read_trace(path).device_seconds * 1e6 == pytest.approx(kernels + fills, abs=0.001)


def test_the_sums_agree_with_torchs_own_tables(tmp_path: Path) -> None:
    """Two implementations: torch adds up its events in memory, we read the exported file."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch = torch.randn(4, 3, 8, 8)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    step()
    # Tensors of other tests that happen to be collected within an op would be counted for it by one side.
    gc.collect()
    gc.disable()
    try:
        with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profile:
            step()
    finally:
        gc.enable()
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    summary = read_trace(path)

    ours = {row.op: row for row in summary.ops}
    theirs = {average.key: average for average in profile.key_averages()}
    compared = set(ours) & set(theirs)
    # Only ours: nothing but time outside ops. Only theirs: annotations and memory outside ops.
    assert set(ours) - compared <= {OUTSIDE_OPS}
    assert all(key == "[memory]" or key.startswith("Optimizer.") for key in set(theirs) - compared)
    assert "aten::convolution_backward" in compared
    for key in compared:
        mine, other = ours[key], theirs[key]
        assert mine.calls == other.count, key
        # Both start from the same nanoseconds; each call may be rounded by a few on its way through the file.
        assert mine.self_seconds * 1e6 == pytest.approx(other.self_cpu_time_total, abs=0.01 * mine.calls), key
        assert mine.memory_bytes == other.self_cpu_memory_usage, key
    outside = ours[OUTSIDE_OPS].memory_bytes if OUTSIDE_OPS in ours else 0
    # What is freed in an annotation ("Optimizer.zero_grad") outside every op torch counts for that.
    their_outside = sum(theirs[key].self_cpu_memory_usage for key in set(theirs) - compared)
    assert outside == their_outside
    assert summary.host_syncs == 1  # loss.item()
    assert summary.peak_memory_delta_bytes > 0
