"""What HTML, Markdown and terminal show of the same record."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from anomprof import report
from anomprof.criticism import criticise
from anomprof.record import load
from anomprof.results import derive
from tests.report.sample_record import FACTORS, FACTS, PROOFS, SUMMARIES, write_record

CHROMIUM = shutil.which("chromium")
HOSTILE = "<script>alert(1)</script>|a`b\n# *c* $x$"


class Cells(HTMLParser):
    """Collects the rows of all tables as lists of text."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def html_rows(folder: Path) -> list[list[str]]:
    parser = Cells()
    parser.feed((folder / "report.html").read_text())
    return parser.rows


def markdown_rows(folder: Path) -> list[list[str]]:
    lines = (folder / "report.md").read_text().splitlines()
    cells = [re.split(r"(?<!\\)\|", line.strip("|")) for line in lines if line.startswith("|")]
    plain = [[unescape(re.sub(r"\\(.)", r"\1", cell.strip())) for cell in row] for row in cells]
    return [row for row in plain if not re.fullmatch("[:-]+", row[0])]


def terminal_text(folder: Path, width: int = 80) -> str:
    record = load(folder)
    results = derive(record)
    console = Console(file=io.StringIO(), width=width)
    report.print_summary(results, criticise(results, record), console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def terminal_line(folder: Path) -> str:
    return " ".join(terminal_text(folder).split())


def everything(folder: Path) -> str:
    report.write(folder)
    return (folder / "report.md").read_text() + unescape((folder / "report.html").read_text())


def test_html_and_markdown_have_the_same_cells(reported: Path) -> None:
    assert html_rows(reported) == markdown_rows(reported)


def test_every_mode_has_the_numbers_of_results_json(reported: Path) -> None:
    modes = json.loads((reported / "results.json").read_text())["modes"]
    rows = {row[0]: row for row in reversed(html_rows(reported)) if row[0] in SUMMARIES and len(row) == 9}
    assert set(rows) == set(SUMMARIES)
    for name in FACTORS:
        _, step, slowdown, verdict, *_ = rows[name]
        if name == "baseline":
            continue
        ratio = modes[name]["slowdown"]
        shown = [float(number) for number in re.findall(r"[\d.]+", slowdown)]
        # Rounded to the digits shown: half of the last one may be missing.
        half = 0.5 * 10.0 ** -len(slowdown.split(" ")[0].partition(".")[2])
        assert shown == pytest.approx([ratio["ratio"], ratio["low"], ratio["high"]], abs=half * 1.001)
        assert verdict == ratio["verdict"]
        unit = {"ms": 1e-3, "s": 1.0}[step.split()[1]]
        assert float(step.split()[0]) * unit == pytest.approx(
            modes[name]["step_seconds"]["median"], rel=0.005
        )


def test_the_terminal_shows_the_same_slowdowns_within_80_columns(reported: Path) -> None:
    text = terminal_text(reported)
    assert max(map(len, text.splitlines())) <= 80
    rows = {row[0]: row for row in reversed(html_rows(reported)) if len(row) == 9}
    for name in FACTORS:
        line = next(line for line in text.splitlines() if line.startswith(f"{name} "))
        assert rows[name][2] in line  # the slowdown, whole: not folded
        assert rows[name][3] in line
    assert "\x1b" not in text


def test_the_terminal_opens_with_the_verdict_and_gives_reasons(reported: Path) -> None:
    text = terminal_line(reported)
    assert text.startswith("Anomaly mode makes this ResNet-50 step 1.2")
    assert "amp-fp16 is not available here: float16 convolutions are not implemented on this CPU." in text
    assert "sat out" not in text  # a detail, for the page


def test_the_page_needs_nothing_else(reported: Path) -> None:
    page = (reported / "report.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?(?!["']?#)""", page)
    assert "@import" not in page
    assert "<script" not in page
    assert not re.search(r"url\((?!#)", page)
    assert '<html lang="en">' in page
    assert "<title>What each mode costs this ResNet-50 step: anomprof</title>" in page


def test_no_id_is_used_twice(reported: Path) -> None:
    ids = re.findall(r'\bid="([^"]+)"', (reported / "report.html").read_text())
    assert ids
    assert len(ids) == len(set(ids))


def test_tables_and_plots_have_captions(reported: Path) -> None:
    page = (reported / "report.html").read_text()
    assert page.count("<figure") == page.count("<figcaption>") == 8
    assert page.count('<svg role="img" aria-label=') == 2


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    facts = {
        **FACTS,
        "workload": {"name": HOSTILE, "samples_per_batch": 2, "facts": {HOSTILE: HOSTILE}},
        "environment": {"cpu_name": HOSTILE, "debug_switches": [HOSTILE]},
        "command": HOSTILE,
    }
    factors = {"baseline": 1.0, "anomaly": 1.2, HOSTILE: 1.1, "other": 1.0}
    bad = {"proof": HOSTILE, "summary": HOSTILE, "sat_out": HOSTILE}
    away = {"available": False, "reason": HOSTILE}
    folder = write_record(
        tmp_path / "run",
        factors=factors,
        facts=facts,
        mode_facts={HOSTILE: bad, "anomaly": bad, "other": away},
    )
    report.write(folder)
    page = (folder / "report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert html_rows(folder) == markdown_rows(folder)
    markdown = (folder / "report.md").read_text()
    assert "<script" not in markdown
    assert not re.search("^# .*c", markdown.split("\n", 1)[1], re.MULTILINE)
    assert terminal_text(folder)


def test_a_killed_run_says_so_and_shows_what_it_has(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "run", rounds=3, killed=True)
    text = everything(folder)
    assert "did not end by itself" in text
    assert "Why the rounds ended was not recorded" in text
    assert "Anomaly mode makes this ResNet-50 step" in text


def test_a_run_killed_in_its_first_turn_claims_nothing(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "run", rounds=1, factors={"baseline": 1.0}, killed=True)
    text = everything(folder)
    assert "Nothing can be said about this ResNet-50 step" in text
    assert "<svg" not in text
    assert "Nothing can be said" in terminal_text(folder)


def test_a_run_killed_before_it_planned_anything_is_readable(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "run", rounds=0, factors={}, facts={}, killed=True)
    assert "Nothing can be said about this training step" in everything(folder)


def test_a_mode_without_proof_is_marked_and_gets_no_number(tmp_path: Path) -> None:
    unproven = {"clip-norm": {"applied": False, "proof": "no norm was computed"}}
    folder = write_record(tmp_path / "run", mode_facts=unproven)
    text = everything(folder)
    row = next(row for row in html_rows(folder) if row[0] == "clip-norm")
    assert row == ["clip-norm", "-", "-", "no proof", "-", "-", "-", "-", "-"]
    assert "there is no proof that it was on (no norm was computed)" in text


def test_same_numbers_are_told_apart(reported: Path) -> None:
    same = {row[0]: row[3] for row in html_rows(reported) if len(row) == 7}
    assert (same["baseline"], same["anomaly"], same["clip-norm"]) == ("yes", "yes", "no")
    assert same["checkpoint"] == "buffers differ"
    assert "checkpoint ends with the baseline's parameters but with other buffers" in everything(reported)


def test_long_runs_keep_the_plots_small(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "run", rounds=40, steps_per_turn=20)
    report.write(folder)
    assert (folder / "report.html").stat().st_size < 600_000


@pytest.mark.skipif(CHROMIUM is None, reason="the binary 'chromium' is not installed here")
def test_a_browser_shows_the_page(reported: Path, tmp_path: Path) -> None:
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --dump-dom"
    )
    command = [
        str(CHROMIUM),
        *flags.split(),
        f"--user-data-dir={tmp_path}",
        (reported / "report.html").as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    parser = Cells()
    parser.feed(done.stdout)
    assert parser.rows == html_rows(reported)
    assert "Anomaly mode makes this ResNet-50 step" in done.stdout
    assert "step time in multiples of the baseline's" in done.stdout
    for proof in PROOFS.values():
        assert proof in done.stdout
