"""Does the method invent differences, and does it find real ones?

    python benchmarks/aa.py mlp          100 short runs of the baseline against itself
    python benchmarks/aa.py resnet50     3 full runs of the baseline against itself
    python benchmarks/aa.py planted      3 full runs of resnet50 with a delay of 5 % planted in a mode

Every run is a process of its own, as a user would start it. The table says how often the 95 %
interval left out 1 (about 5 of 100 by design) and how often a verdict called a difference.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

CASES = {
    # name: (runs, words for bench, the mode that is judged)
    "mlp": (100, ("mlp", "--modes", "baseline-again", "--budget", "6"), "baseline-again"),
    "resnet50": (3, ("resnet50", "--modes", "baseline-again"), "baseline-again"),
    "planted": (
        3,
        ("resnet50", "--modes", f"{HERE / 'planted.py'}:Delayed"),
        f"{HERE / 'planted.py'}:Delayed",
    ),
}


def main() -> None:
    """Runs one case and prints a line per run and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--runs", type=int, help="other than the usual number")
    chosen = parser.parse_args()
    usual, words, mode = CASES[chosen.case]
    runs = chosen.runs or usual
    excluded, verdicts, widths = 0, [], []
    for number in range(runs):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            command = [
                sys.executable,
                "-m",
                "anomprof",
                "bench",
                *words,
                "--seed",
                str(number),
                "--out",
                str(out),
            ]
            subprocess.run(command, check=True, capture_output=True)
            found = json.loads((out / "results.json").read_text())["modes"][mode]["slowdown"]
        outside = not found["low"] <= 1 <= found["high"]
        excluded += outside
        verdicts.append(found["verdict"])
        widths.append(max(found["high"] / found["ratio"] - 1, 1 - found["low"] / found["ratio"]))
        print(
            f"{chosen.case} run {number + 1}: {found['ratio']:.4f} ({found['low']:.4f}-{found['high']:.4f}), "
            f"{found['n']} rounds, {found['verdict']}{', interval excludes 1' if outside else ''}, "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
    counts = ", ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in sorted(set(verdicts)))
    print(f"{runs} runs: interval excludes 1 in {excluded}; verdicts: {counts}")
    print(f"half-widths: median {sorted(widths)[len(widths) // 2]:.2%}, largest {max(widths):.2%}")


if __name__ == "__main__":
    main()
