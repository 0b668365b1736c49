"""From the findings of a watched run to the page: what is shown, in which order, in which words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from anomprof.environment.labels import describe
from anomprof.findings import KIND_NAMES, Finding, Findings, Link
from anomprof.report import finding_words as words
from anomprof.report import source, units
from anomprof.report.page import (
    Column,
    Folded,
    Heading,
    Page,
    Part,
    Points,
    Remedies,
    Route,
    Row,
    Section,
    Station,
    Table,
)

_MOST_STATIONS = 14
_MOST_TENSORS = 40
_MOST_CALLERS = 30
_MOST_UNFOLDED = 20
_MOST_NOTES = 200

#: Facts that have their own place on the page.
_SHOWN_ELSEWHERE = {"environment", "not_watched", "started_utc", "anomprof_version", "directory", "script"}


def page(findings: Findings) -> Page:
    """Returns the whole report of a watched run.

    Of the facts some have their own place: ``script``, ``started_utc``, ``anomprof_version``,
    ``directory`` (the run's working directory, from which files are meant), ``environment`` (as
    collected for a bench) and ``not_watched`` (sentences). All others are listed as they come.
    """
    directory = Path(str(findings.facts.get("directory") or Path.cwd()))
    found = findings.findings
    sections = [
        _origin_section(found[0], directory) if found else Section("", ()),
        _further(found[1:], directory),
        _notes(findings),
        _watched(findings),
        _environment(findings),
        Section("How to read this", (Points(_reading(findings)),)),
    ]
    return Page(
        title=_title(findings),
        headline=words.sentence(found[0]) if found else _ended(words.verdict(findings)),
        sentences=_sentences(findings),
        origin=_origin(findings),
        sections=tuple(section for section in sections if section.parts),
        mark=findings.verdict,
    )


def _title(findings: Findings) -> str:
    script = findings.facts.get("script")
    return f"What anomprof saw in {units.text(script)}" if script else "What anomprof saw in this run"


def _sentences(findings: Findings) -> tuple[str, ...]:
    sentences = []
    if findings.findings:
        first = findings.findings[0]
        for more in (words.recurrence(first), words.doubt(first)):
            if more:
                sentences.append(_ended(more))
        if len(findings.findings) > 1:
            sentences.append(_ended(f"{words.verdict(findings)}; the others are below"))
    if unwatched := words.unwatched(findings):
        sentences.append(_ended(f"Not everything could be looked at: {'; '.join(unwatched)}"))
    return tuple(sentences)


def _origin(findings: Findings) -> str:
    facts = findings.facts
    parts = [
        f"anomprof {units.text(facts['anomprof_version'])}" if "anomprof_version" in facts else "anomprof"
    ]
    if facts.get("started_utc"):
        parts.append(units.text(facts["started_utc"]))
    return " · ".join([*parts, f"{words.steps(findings)} watched"])


def _origin_section(finding: Finding, directory: Path) -> Section:
    return Section(words.capital(words.headline(finding)), _parts(finding, directory), "finding")


def _parts(finding: Finding, directory: Path) -> tuple[Part, ...]:
    """Returns all that is known about one finding, most wanted first."""
    parts: list[Part] = []
    if excerpt := source.excerpt(finding, directory):
        parts.append(excerpt)
    if finding.message:
        parts.append(units.one_line(finding.message))
    parts += [Heading("Why, and what to do"), Remedies(finding.advice.cause, finding.advice.remedies)]
    if tensors := _tensors(finding):
        parts += [Heading("What went in and came out"), tensors]
    if len(finding.chain) > 1 or (finding.chain and finding.symptom):
        parts += [Heading("From origin to symptom"), _route(finding)]
    if finding.callers:
        parts += [Heading("Who called it"), _callers(finding)]
    return (*parts, Heading("The finding in full"), _facts(finding))


def _tensors(finding: Finding) -> Table | None:
    rows = words.tensor_rows(finding)
    if not rows:
        return None
    caption = "Range: smallest and largest value that is a number; infinities count."
    if len(rows) > _MOST_TENSORS:
        caption += f" {len(rows) - _MOST_TENSORS} more are in findings.json."
    columns = (Column("tensor"), Column("dtype"), Column("shape"), Column("range"), Column("bad elements"))
    shown = (Row((*row[:4], row[4] or units.NONE), "bad" if row[4] else "") for row in rows[:_MOST_TENSORS])
    return Table(caption, columns, tuple(shown))


def _route(finding: Finding) -> Route:
    wanted = {(finding.op, finding.line), (finding.backward_op, finding.line)}
    # What made the first Inf of a NaN may come before the origin.
    origin = next((link for link in finding.chain if (link.op, link.line) in wanted), finding.chain[0])
    stations = [
        Station(f"{part} more", mark="gap")
        if isinstance(part, int)
        else _station(part, "origin" if part is origin else "")
        for part in words.abridged(finding.chain, _MOST_STATIONS)
    ]
    if finding.symptom:
        stations.append(Station(units.one_line(finding.symptom), mark="symptom"))
    return Route(
        "The ops that handed the bad value on, origin first, where it was noticed last.", tuple(stations)
    )


def _station(link: Link, mark: str) -> Station:
    parts = [link.phase, link.module, words.short_place(link)]
    return Station(
        units.one_line(link.op) or "an op",
        ", ".join(units.one_line(part) for part in parts if part),
        units.one_line(link.code),
        KIND_NAMES[link.kind] if link.kind in ("nan", "inf") else "",
        mark,
    )


def _callers(finding: Finding) -> Table:
    rows = [
        Row(
            (
                f"{units.one_line(frame.file)}:{frame.line}",
                units.one_line(frame.function),
                units.one_line(frame.code),
            )
        )
        for frame in finding.callers[:_MOST_CALLERS]
    ]
    columns = (Column("line"), Column("function"), Column("code"))
    return Table("The calls that led to the line, innermost first.", columns, tuple(rows))


def _facts(finding: Finding) -> Table:
    facts = {
        "kind": words.kind(finding),
        "phase": finding.phase,
        "step": units.count(finding.step),
        "rank": units.count(finding.rank) if finding.rank else "",
        "module": finding.module or "outside every module",
        "op": finding.op,
        "autograd node": finding.node or "",
        "op in backward": finding.backward_op or "",
        "source line": words.place(finding),
        "confidence": finding.confidence + (f": {words.doubt(finding)}" if words.doubt(finding) else ""),
        "symptom": finding.symptom,
        "seen": words.recurrence(finding),
    }
    return _table("Steps are counted from 0.", facts)


def _further(found: tuple[Finding, ...], directory: Path) -> Section:
    if not found:
        return Section("", ())
    columns = (
        Column("kind"),
        Column("step", True),
        Column("phase"),
        Column("module"),
        Column("op"),
        Column("line"),
        Column("symptom"),
    )
    rows = [
        Row(
            tuple(
                units.one_line(cell) or units.NONE
                for cell in (
                    words.kind(finding),
                    units.count(finding.step),
                    finding.phase,
                    finding.module,
                    finding.op,
                    words.place(finding),
                    finding.symptom,
                )
            )
        )
        for finding in found
    ]
    table = Table("Other origins, in the order in which they were found.", columns, tuple(rows))
    details = [
        Folded(words.capital(words.headline(finding, "")), _parts(finding, directory))
        for finding in found[:_MOST_UNFOLDED]
    ]
    return Section("Further findings", (table, *details))


def _notes(findings: Findings) -> Section:
    if not findings.notes:
        return Section("", ())
    rows = [
        Row(
            (
                units.one_line(note.what),
                units.NONE if note.step is None else units.count(note.step),
                units.count(note.times),
            )
        )
        for note in findings.notes[:_MOST_NOTES]
    ]
    left_out = len(findings.notes) - len(rows)
    caption = "Worth knowing, but harmless." + (f" {left_out} more are in findings.json." if left_out else "")
    columns = (Column("note"), Column("first in step", True), Column("times", True))
    return Section("Notes", (Table(caption, columns, tuple(rows)),))


def _watched(findings: Findings) -> Section:
    facts = {"steps": units.count(findings.steps)}
    for key, value in findings.facts.items():
        if key not in _SHOWN_ELSEWHERE:
            shown = units.seconds(value) if key == "seconds" and _is_number(value) else units.text(value)
            facts[units.one_line(key.replace("_", " "))] = shown
    parts: list[Part] = [_table("The run as it was watched.", facts)]
    if unwatched := words.unwatched(findings):
        parts += ["What could not be looked at:", Points(unwatched)]
    return Section("What was watched", tuple(parts))


def _environment(findings: Findings) -> Section:
    environment = findings.facts.get("environment")
    if not isinstance(environment, Mapping) or not environment:
        return Section("", ())
    return Section("Environment", (_table("Where it ran.", dict(describe(environment))),))


def _reading(findings: Findings) -> tuple[str, ...]:
    points = [
        "A finding names the origin of a bad value: the first op whose output held a NaN or Inf that none of "
        "its inputs held, and which reached a loss, a gradient, a parameter or a buffer. Where the loss "
        "turned bad, or what anomaly mode names, is often a victim further on.",
        "A fault in backward is shown at the forward line that made the guilty autograd node: there it is "
        "repaired.",
        "NaN and Inf are followed separately. An Inf is often born first and becomes NaN one op later.",
        "Bad values that harmed nothing (a mask of -Inf, a value that was overwritten) are no findings.",
    ]
    if not findings.findings:
        points.append(
            "Clean means: in the steps and ops that were watched. A rare batch may still hold a surprise."
        )
    return tuple(points)


def _table(caption: str, facts: Mapping[str, str]) -> Table:
    rows = tuple(Row((name, units.one_line(value))) for name, value in facts.items() if value)
    return Table(caption, (Column("what"), Column("value")), rows)


def _ended(sentence: str) -> str:
    return words.capital(sentence.rstrip(". ")) + "."


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
