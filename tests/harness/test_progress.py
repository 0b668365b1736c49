import io

from rich.console import Console

from anomprof.harness.progress import Progress, estimate
from anomprof.harness.rounds import State
from anomprof.stats import Interval


def shown(terminal, *states):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    with Progress(console, "bench tiny") as progress:
        for state in states:
            progress.show(state)
    return out.getvalue()


def state(**more):
    slowdowns = {"anomaly": Interval(1.27, 1.24, 1.31, 9)}
    usual = {
        "doing": "measuring",
        "round": 4,
        "mode": "anomaly",
        "slowdowns": slowdowns,
        "seconds_used": 60.0,
    }
    return State(180.0, ("baseline", "anomaly", "clip-norm"), **{**usual, **more})


def test_a_terminal_shows_mode_round_time_left_and_estimates():
    text = shown(True, state())
    for words in ("bench tiny", "round 4", "anomaly", "at most 2:00 left", "1.27x (1.24-1.31)", "slower"):
        assert words in text


def test_a_mode_that_is_not_available_says_why():
    assert "no compiler" in shown(True, state(unavailable={"clip-norm": "no compiler"}))


def test_a_log_file_gets_a_line_now_and_then():
    text = shown(False, state(), state(seconds_used=61.0), state(seconds_used=80.0))
    assert text.splitlines() == [
        "60 s of 180 s: round 4, measuring: anomaly (anomaly 1.27x)",
        "80 s of 180 s: round 4, measuring: anomaly (anomaly 1.27x)",
    ]


def test_one_round_has_no_interval_yet():
    assert estimate(Interval(1.3, float("nan"), float("nan"), 1)) == "1.30x"
