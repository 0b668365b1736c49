"""What anomprof's trace costs, beside anomaly mode and other tools, in one run each.

    python benchmarks/trace.py
    python benchmarks/trace.py --workloads mlp,gpt --budget 60

Every workload is one run of ``python -m anomprof bench``, so that all modes take turns within each round.
The ratio of trace and anomaly is formed within the rounds that have both, each divided by the baseline
beside it. Accepted is: trace takes at most as long as anomaly mode on resnet50, vit and gpt, at most
1.2 times as long on mlp and lstm, and at most 1.10 times the baseline's memory on resnet50.

sherlorch is measured without lines, which are its dearest option. It and transformers are installed for
this benchmark only: python -m pip install sherlorch transformers. Without them their columns stay empty.
Needs a quiet machine and about three minutes a workload.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from tabulate import tabulate

from anomprof.record import Record, load
from anomprof.results import Results, derive, pair_up
from anomprof.stats import Interval, paired_ratio

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers" / "modes.py"

#: Heading -> mode.
MODES = {
    "anomaly": "anomaly",
    "trace": "trace",
    "transformers": f"{PEERS}:Transformers",
    "sherlorch": f"{PEERS}:Sherlorch",
}

#: Workload -> (options for bench, most that trace may take of anomaly mode's time).
WORKLOADS: dict[str, tuple[tuple[str, ...], float]] = {
    "resnet50": (("--batch-size", "2"), 1.0),
    "vit": (("--batch-size", "4"), 1.0),
    "gpt": (("--batch-size", "12"), 1.0),
    "lstm": (("--batch-size", "20"), 1.2),
    "mlp": (("--batch-size", "128"), 1.2),
}

MEMORY_WORKLOAD, MOST_MEMORY = "resnet50", 1.10


def bench(workload: str, budget: float, out: Path) -> Record:
    """Measures all modes on a workload and returns the record."""
    options, _ = WORKLOADS[workload]
    modes = ",".join(MODES.values())
    words = ["bench", workload, *options, "--modes", modes, "--budget", str(budget), "--out", str(out)]
    done = subprocess.run([sys.executable, "-m", "anomprof", *words], capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        sys.exit(f"bench {workload} ended with {done.returncode}: {last}")
    return load(out)


def against(record: Record, mode: str, other: str) -> Interval | None:
    """Returns how many times longer a step takes in one mode than in another, paired within the rounds."""
    pairs = pair_up(record.turns)
    ratios = []
    for process, turns in pairs.get(mode, {}).items():
        others = {pair.round: pair.ratio for pair in pairs.get(other, {}).get(process, ())}
        ratios.append([pair.ratio / others[pair.round] for pair in turns if pair.round in others])
    return paired_ratio(ratios) if any(ratios) else None


def judged(ratio: Interval | None, limit: float) -> str:
    """Says whether the whole interval keeps the limit."""
    if ratio is None or math.isnan(ratio.low):
        return "not resolved"
    if ratio.high <= limit:
        return "met"
    return "not met" if ratio.low > limit else "not resolved"


def shown(ratio: Interval | None) -> str:
    """A ratio with its interval."""
    if ratio is None:
        return "-"
    if math.isnan(ratio.low):
        return f"{ratio.estimate:.2f} (1 round)"
    return f"{ratio.estimate:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def cell(results: Results, name: str) -> str:
    """A mode's slowdown, or that it was not shown to be on."""
    mode = results.mode(name)
    if mode is None or not mode.available:
        return "-"
    return shown(mode.slowdown) if mode.applied else "not shown to be on"


def doubts(workload: str, results: Results) -> list[str]:
    """Modes that could not run or that changed the numbers."""
    lines = []
    for heading, name in MODES.items():
        mode = results.mode(name)
        if mode is not None and not mode.available:
            lines.append(f"{workload}, {heading}: {mode.reason}")
        elif mode is not None and mode.same_parameters is False:
            lines.append(f"{workload}, {heading}: the trained parameters are not those of the baseline")
    return lines


def memory_line(results: Results) -> str:
    """Says how much more memory the trace needs; one profiled step each, so there is no interval."""
    mode = results.mode("trace")
    if mode is None or mode.memory_ratio is None:
        return f"Memory of trace on {MEMORY_WORKLOAD}: not measured"
    verdict = "met" if mode.memory_ratio <= MOST_MEMORY else "not met"
    return (
        f"Peak memory of trace on {MEMORY_WORKLOAD}: {mode.memory_ratio:.3f} of the baseline's "
        f"(at most {MOST_MEMORY:.2f}: {verdict})"
    )


def main() -> None:
    """Measures and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="separated by commas; default: all")
    parser.add_argument("--budget", type=float, default=120, help="seconds of measuring each; default: 120")
    parser.add_argument("--out", type=Path, help="keep the runs' folders here")
    chosen = parser.parse_args()
    names = [name.strip() for name in chosen.workloads.split(",")]
    for name in names:
        if name not in WORKLOADS:
            parser.error(f"no workload is called {name!r}; known are {', '.join(WORKLOADS)}")
    costs, ratios, notes = [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            print(f"measuring {name}", file=sys.stderr, flush=True)
            record = bench(name, chosen.budget, (chosen.out or Path(temporary)) / name)
            results = derive(record)
            costs.append([name, *(cell(results, mode) for mode in MODES.values()), results.rounds])
            ratio, limit = against(record, "trace", "anomaly"), WORKLOADS[name][1]
            rounds = ratio.n if ratio else 0
            ratios.append([name, shown(ratio), rounds, f"at most {limit:.1f}", judged(ratio, limit)])
            notes += doubts(name, results)
            if name == MEMORY_WORKLOAD:
                notes.append(memory_line(results))
    print("Step time as a multiple of the baseline's, with its 95 % interval:\n")
    print(tabulate(costs, ["workload", *MODES, "rounds"], tablefmt="github", disable_numparse=True))
    print("\nStep time of trace as a multiple of anomaly mode's:\n")
    heads = ["workload", "trace / anomaly", "rounds with both", "accepted", "verdict"]
    print(tabulate(ratios, heads, tablefmt="github", disable_numparse=True))
    for note in notes:
        print(f"\n{note}")


if __name__ == "__main__":
    main()
