"""What a terminal shows of findings."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from anomprof.findings import Advice, Finding, Findings, Link, Note
from anomprof.report.finding_text import announce, summary
from tests.report import sample_findings as sample

HOSTILE = "\x1b[31m<b>`a`|[bold]\n\r\t\x07b"
LONG = "a_very_long_name." * 30
ODD = {
    "backward": sample.finding(),
    "softmax": sample.softmax(),
    "clip": sample.clip(),
    "input": sample.bad_batch(),
    "in place": sample.in_place(),
    "long": sample.finding(
        module=LONG, file=f"{LONG}.py", code=f"x = {LONG}; y = torch.sqrt({LONG})", symptom=LONG,
        message=LONG, function=LONG,
        chain=tuple(Link(LONG, "forward", LONG, LONG, n, LONG) for n in range(90)),
        advice=Advice(LONG, (LONG, LONG)), inputs=sample.softmax().inputs * 20,
        outputs=sample.clip().outputs * 20,
    ),
    "hostile": sample.finding(
        kind=HOSTILE, phase=HOSTILE, op=HOSTILE, node=HOSTILE, module=HOSTILE, file=HOSTILE,
        code=HOSTILE, function=HOSTILE, symptom=HOSTILE, message=HOSTILE, confidence=HOSTILE,
        advice=Advice(HOSTILE, (HOSTILE,)),
        chain=(Link(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE),) * 3,
    ),
    "wide": sample.finding(code="结果 = 模型.前向(torch.sqrt(功率))  # " + "开平方" * 40, module="编码" * 30),
    "empty": Finding(
        "nan", "forward", 0, 0, "", None, None, "", "", 0, "", "", "unknown", (), (), (), (), "",
        Advice("", ()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_finding_takes_at_most_14_lines_of_100_columns(name: str) -> None:
    lines = announce(ODD[name]).split("\n")
    assert len(lines) <= 14
    assert max(map(cell_len, lines)) <= 100
    assert all(line.isprintable() for line in lines)
    assert "first " in lines[0]


@pytest.mark.parametrize("width", [60, 80, 99])
@pytest.mark.parametrize("name", ODD)
def test_a_finding_fits_a_narrow_terminal(name: str, width: int) -> None:
    lines = announce(ODD[name], width=width).split("\n")
    assert len(lines) <= 18
    assert max(map(cell_len, lines)) <= width


def test_a_wide_terminal_is_not_filled_and_a_tiny_one_not_obeyed() -> None:
    assert announce(ODD["long"], width=240) == announce(ODD["long"])
    assert announce(ODD["long"], width=3) == announce(ODD["long"], width=60)
    findings = Findings(3, (ODD["long"],), (Note("word " * 60),))
    assert max(map(cell_len, summary(findings, width=72).split("\n"))) <= 72


def test_what_and_where_stand_in_the_first_line() -> None:
    first = announce(sample.finding()).splitlines()[0]
    assert first == "anomprof: first NaN: step 2, backward, energy, aten::sqrt, train.py:17"


def test_a_long_headline_gives_the_place_a_line_of_its_own() -> None:
    module = "generator.decoder.blocks.11.cross_attention.projection"
    lines = announce(sample.softmax(module=module, file="src/models/attention.py")).splitlines()
    assert "attention.py" not in lines[0]
    assert lines[1].split() == ["at", "src/models/attention.py:88"]


@pytest.mark.parametrize(
    ("op", "code", "marked"),
    [
        ("aten::sqrt", "root = torch.sqrt(power)", "sqrt"),
        ("aten::_softmax", "w = torch.softmax(q, -1)", "softmax"),
        ("aten::div.Tensor", "loss = total / count", "/"),
        ("aten::add_", "hidden += skip", "+="),
        ("aten::bmm", "scores = q @ k.mT", "@"),
        ("aten::pow", "y = x ** p * 2", "**"),
        ("aten::mul", "y = x ** p * 2", "*"),
        ("aten::linalg_vector_norm", "clip(model)", "clip(model)"),  # not named there: all of it
        ("aten::sqrt", "a = sqrt(x) + sqrt(y)", "a = sqrt(x) + sqrt(y)"),  # which of the two is not known
    ],
)
def test_the_mark_is_under_the_op(op: str, code: str, marked: str) -> None:
    _, source, mark, *_ = announce(sample.finding(op=op, code=code)).splitlines()
    start = mark.index("^")
    assert source[start : start + mark.count("^")] == marked


def test_a_mark_far_to_the_right_stays_in_sight() -> None:
    code = "value = some_function(" + "argument, " * 15 + "torch.sqrt(power))"
    _, source, mark, *_ = announce(sample.finding(code=code)).splitlines()
    assert source[mark.index("^") :].startswith("sqrt(power)")


def test_the_mark_counts_columns_not_characters() -> None:
    _, source, mark, *_ = announce(sample.finding(code="结果 = torch.sqrt(功率)")).splitlines()
    assert cell_len(source[: source.index("sqrt")]) == mark.index("^")


def test_ranges_are_aligned_and_bad_elements_counted() -> None:
    lines = announce(sample.softmax()).splitlines()
    before = next(line for line in lines if line.startswith("  in "))
    after = next(line for line in lines if line.startswith("  out "))
    assert before.split("  ")[-1] == "66,048 Inf of 524,288"
    assert after.index("512 NaN") == before.index("66,048")
    assert "-Inf .. 7.813" in before


def test_when_there_are_many_tensors_an_output_is_always_shown() -> None:
    lines = announce(sample.finding(inputs=sample.finding().inputs * 10)).splitlines()
    assert any(re.match(r"  out ", line) for line in lines)
    assert any("more)" in line for line in lines)


def test_tensors_that_were_not_read_say_so() -> None:
    unread = sample.tensor((3,), nan=None, inf=None)
    empty = sample.tensor((0, 2))
    bad = sample.tensor((3,), nan=3)
    text = announce(sample.finding(inputs=(unread, empty), outputs=(bad,), chain=()))
    assert "not read" in text
    assert "empty" in text
    assert "no numbers" in text
    assert "all NaN" in text


def test_the_path_keeps_both_ends() -> None:
    text = " ".join(announce(sample.softmax()).split())
    assert re.search(
        r"path aten::masked_fill .* more -> .*aten::nll_loss_forward \(train.py:41\) -> loss", text
    )


def test_doubt_and_recurrence_are_said() -> None:
    assert "the module is sure, the line is not" in announce(sample.clip(symptom="loss"))
    assert "harmful in 12 steps, last in step 30" in announce(sample.softmax())


def test_autograd_is_quoted() -> None:
    text = " ".join(announce(sample.in_place()).split())
    assert "said RuntimeError: one of the variables needed" in text
    assert "first autograd error" in text


def test_advice_is_shown_without_backticks_and_never_cut_in_its_first_remedy() -> None:
    text = announce(sample.finding())
    assert "`" not in text
    assert "torch.sqrt(torch.where(ok, x, torch.ones_like(x)))." in text


def test_colour_changes_no_word() -> None:
    for finding in ODD.values():
        coloured = announce(finding, colour=True)
        assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == announce(finding)
        assert coloured.startswith("\x1b[1;31m")


def test_a_clean_run_says_what_was_watched() -> None:
    text = summary(sample.findings())
    assert text.splitlines()[0] == (
        "anomprof: clean: 40 steps watched, nothing bad reached a loss, gradient or parameter (2 notes)"
    )
    assert "note  GradScaler skipped a step (scale 65536 -> 32768) (step 0, 3 times)" in text
    assert "unseen 1 scripted function" in text


def test_a_run_without_a_step_is_not_called_clean() -> None:
    assert (
        summary(Findings(0)) == "anomprof: no optimizer step and no backward was seen, so nothing can be said"
    )
    assert summary(Findings(1)).startswith("anomprof: clean: 1 step watched")


def test_the_summary_lists_findings_and_does_not_scroll_away() -> None:
    many = sample.findings(
        *(sample.finding(step=step) for step in range(20)),
        notes=tuple(Note(f"note {number}", number) for number in range(30)),
    )
    lines = summary(many).splitlines()
    assert lines[0] == "anomprof: 20 findings in 40 steps (counted from 0)"
    assert lines[1] == "  1     NaN: step 0, backward, energy, aten::sqrt, train.py:17"
    assert any("10 more findings in the report" in line for line in lines)
    assert len(lines) < 25
    assert max(map(cell_len, lines)) <= 100


def test_errors_alone_are_called_errors() -> None:
    assert summary(sample.findings(sample.in_place())).startswith("anomprof: 1 autograd error in 40 steps")


def test_hostile_notes_and_facts_stay_one_line_each() -> None:
    found = Findings(3, (), (Note(HOSTILE, 1),), {"not_watched": HOSTILE})
    assert all(line.isprintable() for line in summary(found).split("\n"))
    assert len(summary(found).split("\n")) == 3


def test_ranks_other_than_the_first_are_named() -> None:
    assert "step 2, rank 3, backward" in announce(replace(sample.finding(), rank=3))
