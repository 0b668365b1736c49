from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch
from torch.profiler import ProfilerActivity

from anomprof.instruments.stderr_filter import quiet_profiler


def test_only_the_chatter_is_dropped_and_the_order_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_profiler():
        os.write(2, b"first\nUSDT:2026 profiler_start\n")
        os.write(2, b"[W1 CPUAllocator.cpp:245] Memory block of unknown size was allocated before the ")
        os.write(2, b"profiling started, profiler results will not include the deallocation event\n")
        os.write(2, b"ERROR: USDT: is no first word here\nno line end")
    os.write(2, b"\nafter\n")
    assert capfd.readouterr().err == "first\nERROR: USDT: is no first word here\nno line end\nafter\n"


def test_lines_come_through_when_the_step_fails(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with quiet_profiler():
            os.write(2, b"the reason\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capfd.readouterr().err == "the reason\n"


def test_it_can_be_nested(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_profiler(), quiet_profiler():
        os.write(2, b"once\nUSDT:x\n")
    assert capfd.readouterr().err == "once\n"


def test_a_duplicate_made_before_reaches_the_terminal_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    terminal = os.dup(2)
    with quiet_profiler():
        os.write(2, b"late\n")
        os.write(terminal, b"progress\n")
    os.close(terminal)
    assert capfd.readouterr().err == "progress\nlate\n"


def test_torchs_profiler_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    old = torch.ones(1000)
    with (
        quiet_profiler(),
        torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True),
    ):
        del old
        torch.ones(10).sum()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("prepare", ["os.close(2)", "sys.stderr = None", "sys.stderr.close()"])
def test_a_process_without_stderr_is_left_as_it_is(prepare: str) -> None:
    code = f"""
        import os, sys
        from anomprof.instruments.stderr_filter import quiet_profiler
        {prepare}
        with quiet_profiler():
            print("inside")
        try:
            os.fstat(2)
            print("open")
        except OSError:
            print("closed")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["inside", "closed" if prepare == "os.close(2)" else "open"]


def test_no_descriptor_is_left_open() -> None:
    before = os.dup(2)
    os.close(before)
    with quiet_profiler():
        pass
    after = os.dup(2)
    os.close(after)
    assert after == before
