"""The files that a watched run leaves."""

from __future__ import annotations

import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import orjson
import pytest
from markdown_it import MarkdownIt  # comes with rich

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.findings import Advice, Findings, Frame, Link, Note
from anomprof.report import run_folder
from tests.report import sample_findings as sample
from tests.report.test_folder import modules_loaded_by
from tests.report.test_page import CHROMIUM, HOSTILE, html_rows, markdown_rows

INF = float("inf")


def written(folder: Path, findings: Findings) -> tuple[str, str]:
    """Returns the two pages as text: HTML, Markdown."""
    run_folder.write(folder, findings)
    return (folder / "report.html").read_text(), (folder / "report.md").read_text()


def at(folder: Path, *found: Any, **changed: Any) -> Findings:
    """Findings of a run in a folder, which holds the script."""
    sample.write_script(folder)
    return sample.findings(*found, facts={**sample.FACTS, "directory": str(folder)}, **changed)


def shown(page: str) -> str:
    """Returns the words of a page, without markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_a_run_leaves_three_files_and_names_them_page_first(tmp_path: Path) -> None:
    paths = run_folder.write(tmp_path, sample.findings(sample.finding()))
    assert paths == [tmp_path / name for name in ("report.html", "report.md", "findings.json")]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}


@pytest.mark.parametrize("name", ["finding", "softmax", "clip", "bad_batch", "in_place"])
def test_findings_survive_the_file(tmp_path: Path, name: str) -> None:
    findings = sample.findings(getattr(sample, name)())
    run_folder.write(tmp_path, findings)
    assert run_folder.load(tmp_path) == findings


def test_the_file_keeps_its_contract(tmp_path: Path) -> None:
    run_folder.write(tmp_path, sample.findings(sample.softmax()))
    content = orjson.loads((tmp_path / "findings.json").read_bytes())
    assert content["schema"] == "anomprof.findings/1"
    assert content["verdict"] == "anomaly"
    first = content["findings"][0]
    assert (first["kind"], first["op"], first["line"]) == ("nan", "aten::_softmax", 88)
    assert first["inputs"][0]["min"] == "-inf"
    assert first["advice"].keys() == {"cause", "remedies"}


def test_numbers_that_are_none_survive_in_facts_and_tensors(tmp_path: Path) -> None:
    odd = sample.finding(inputs=(sample.tensor((2,), -INF, INF, None, 2),))
    page, markdown = written(tmp_path, sample.findings(odd, facts={"loss": float("nan"), "seconds": INF}))
    assert run_folder.load(tmp_path).findings[0] == odd
    assert "-Inf .. Inf" in shown(page)
    assert "-Inf .. Inf" in markdown


def test_the_pages_can_be_rebuilt_from_the_file_alone(tmp_path: Path) -> None:
    findings = at(tmp_path, sample.finding(), sample.softmax())
    before = written(tmp_path, findings)
    for name in ("report.html", "report.md"):
        (tmp_path / name).unlink()
    text = run_folder.rebuild(tmp_path)
    assert text.startswith("anomprof: 2 findings in 40 steps")
    assert ((tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()) == before


def test_the_headline_says_it_all(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, at(tmp_path, sample.finding()))
    headline = (
        "The first NaN came from aten::sqrt of energy at train.py:17 in step 2, in the backward pass, and "
        "reached the gradient of front.0.weight."
    )
    assert f'<p class="headline">{headline}</p>' in page
    assert f"**{headline}**" in markdown


def test_a_clean_run_says_so_and_what_clean_means(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, sample.findings())
    for text in (shown(page), markdown):
        assert "Clean: 40 steps watched, nothing bad reached a loss, gradient or parameter (2 notes)." in text
        assert "Clean means" in text
        assert "Why, and what to do" not in text
        assert "1 scripted function" in text
    assert '<header class="clean">' in page


def test_a_run_of_which_nothing_is_known_has_a_page(tmp_path: Path) -> None:
    page, _ = written(tmp_path, Findings(0))
    assert "No optimizer step and no backward was seen, so nothing can be said." in shown(page)


def test_html_and_markdown_have_the_same_cells(tmp_path: Path) -> None:
    findings = at(tmp_path, sample.finding(), sample.softmax(), sample.clip(), sample.bad_batch())
    run_folder.write(tmp_path, findings)
    assert html_rows(tmp_path) == markdown_rows(tmp_path)
    assert len(html_rows(tmp_path)) > 30


def test_the_source_is_shown_around_the_line_with_the_op_marked(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, at(tmp_path, sample.finding()))
    assert "root = torch.<mark>sqrt</mark>(power)" in page
    assert re.search(r"^>    17 \|     root = torch\.sqrt\(power\)$", markdown, re.MULTILINE)
    assert re.search(r"^     19 \|     root = torch\.where", markdown, re.MULTILINE)
    assert "Trains a small model" not in page  # too far away


@pytest.mark.parametrize("change", ["gone", "changed", "folder", "binary"])
def test_source_that_is_not_what_it_was_is_not_shown(tmp_path: Path, change: str) -> None:
    findings = at(tmp_path, sample.finding())
    script = tmp_path / "train.py"
    script.unlink()
    if change == "changed":
        script.write_text("# new\n" + sample.SCRIPT)
    elif change == "folder":
        script.mkdir()
    elif change == "binary":
        script.write_bytes(b"\xff\xfe\x00" * 100)
    page, _ = written(tmp_path, findings)
    assert "the lines around it could not be read" in shown(page)
    assert "root = torch.<mark>sqrt</mark>(power)" in page
    assert "quiet" not in page


def test_without_any_line_there_is_no_excerpt(tmp_path: Path) -> None:
    nowhere = sample.finding(
        file="", line=0, function="", code="", confidence="unknown", callers=(), chain=()
    )
    page, _ = written(tmp_path, sample.findings(nowhere))
    assert '<div class="wide source"' not in page
    assert "no source line known" in shown(page)
    assert "The line is not certain." in shown(page)


def test_the_way_of_the_value_is_drawn_and_abridged(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, sample.findings(sample.softmax()))
    assert '<li><b>aten::masked_fill</b> <span class="badge">Inf</span>' in page
    assert '<li class="origin"><b>aten::_softmax</b> <span class="badge">NaN</span>' in page
    assert '<li class="symptom"><b>loss</b>' in page
    assert '<li class="gap"><b>16 more</b>' in page  # 30 links, of which 14 are shown
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", markdown, re.MULTILINE)]
    assert numbers == list(range(1, 14 + 1 + 1 + 1))  # stations, the gap, the symptom


def test_advice_shows_its_code_as_code(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, sample.findings(sample.finding()))
    assert "<code>torch.sqrt(torch.where(ok, x, torch.ones_like(x)))</code>" in page
    assert "`torch.sqrt(torch.where(ok, x, torch.ones_like(x)))`" in markdown


def test_twenty_findings_are_listed_and_folded(tmp_path: Path) -> None:
    many = [sample.finding(step=step, line=step + 1) for step in range(20)]
    page, markdown = written(tmp_path, sample.findings(*many))
    assert page.count("<details>") == 19
    assert "20 findings in 40 steps (counted from 0); the others are below." in shown(page)
    assert markdown.count("\n### NaN: step ") == 19
    assert len(page) < 500_000


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    bad = sample.finding(
        kind=HOSTILE, phase=HOSTILE, op=HOSTILE, node=HOSTILE, backward_op=HOSTILE, module=HOSTILE,
        file=HOSTILE, function=HOSTILE, code=HOSTILE, confidence=HOSTILE, symptom=HOSTILE, message=HOSTILE,
        callers=(Frame(HOSTILE, 1, HOSTILE, HOSTILE),), advice=Advice(HOSTILE, (HOSTILE, "```", "a`b")),
        chain=(Link(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE),) * 2,
        inputs=(sample.tensor((2,), dtype=HOSTILE),),
    )  # fmt: skip
    facts = {
        HOSTILE: HOSTILE,
        "not_watched": [HOSTILE],
        "script": HOSTILE,
        "environment": {"cpu_model": HOSTILE},
    }
    page, markdown = written(tmp_path, Findings(3, (bad, bad), (Note(HOSTILE, 1),), facts))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    rendered = MarkdownIt("commonmark").enable("table").render(markdown)
    assert "<script" not in rendered
    assert rendered.count("<h1>") == 1
    assert "<b>" not in rendered
    assert html_rows(tmp_path) == markdown_rows(tmp_path)


def test_a_fence_in_the_source_does_not_end_the_excerpt(tmp_path: Path) -> None:
    code = "root = torch.sqrt(power)  # ```"
    (tmp_path / "train.py").write_text(f"'''\n````\n'''\n{code}\n")
    facts = {"directory": str(tmp_path)}
    _, markdown = written(tmp_path, sample.findings(sample.finding(line=4, code=code), facts=facts))
    assert re.search(r"(?s)`````text\n.*# ```\n`````\n", markdown)


def test_lone_surrogates_can_be_written(tmp_path: Path) -> None:
    odd = sample.finding(file="tr\udce4n.py", code="x = '\udcff'", module="\ud800")
    page, _ = written(tmp_path, sample.findings(odd))
    assert page


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page, _ = written(tmp_path, at(tmp_path, sample.finding(), sample.softmax()))
    assert page.startswith("<!doctype html>")
    assert not re.search(r"""(src|href)\s*=\s*["']?(?!["']?#)""", page)
    assert "@import" not in page
    assert "<script" not in page
    assert "url(" not in page
    assert page.count("<figure") == page.count("<figcaption>")


def test_nothing_heavy_is_loaded() -> None:
    loaded = modules_loaded_by("import anomprof.report.run_folder, anomprof.report.finding_text")
    assert "anomprof" in loaded
    assert not loaded & {"torch", "matplotlib", "scipy", "numpy"}


def test_a_full_disk_leaves_the_old_page_and_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_folder.write(tmp_path, sample.findings())
    old = (tmp_path / "report.html").read_bytes()

    def full(path: Path, target: Path) -> None:
        if target.name == "report.html":
            raise OSError(28, "No space left on device")
        path.rename(target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        UserError, match=r"report\.html \(No space left on device\); findings\.json"
    ) as caught:
        run_folder.write(tmp_path, sample.findings(sample.finding()))
    assert caught.value.exit_code == COULD_NOT_MEASURE
    assert (tmp_path / "report.html").read_bytes() == old
    assert run_folder.load(tmp_path).verdict == "anomaly"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"schema": "anomprof.findings/1"}', b"\xff", b'{"schema": "other"}']
)
def test_a_file_that_is_not_whole_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "findings.json").write_bytes(content)
    with pytest.raises(UserError, match=r"findings\.json is not a whole file of findings"):
        run_folder.rebuild(tmp_path)


def test_a_folder_without_findings_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*findings\.json \(No such file"):
        run_folder.rebuild(tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="the binary 'chromium' is not installed here")
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    run_folder.write(tmp_path, at(tmp_path, sample.finding(), sample.softmax()))
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --dump-dom"
    )
    page = (tmp_path / "report.html").as_uri()
    command = [str(CHROMIUM), *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", page]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    text = shown(re.sub(r"(?s)<style>.*?</style>", "", done.stdout))
    assert "First NaN: step 2, backward, energy, aten::sqrt, train.py:17" in text
    assert "From origin to symptom" in text
