"""The files that a watched run leaves: ``findings.json``, ``report.html`` and ``report.md``."""

from __future__ import annotations

from pathlib import Path

from anomprof.errors import COULD_NOT_MEASURE, UserError
from anomprof.findings import FILE_NAME, Findings
from anomprof.report import finding_text, html, markdown, run_page
from anomprof.report.whole_file import write_whole


def write(folder: Path, findings: Findings) -> list[Path]:
    """Writes all files of a watched run into an existing folder; returns their paths, the page first.

    ``findings.json`` is written first: whatever happens to the pages, they can be rebuilt from it.

    Raises:
        UserError: The folder cannot be written.
    """
    content = findings.to_json().decode() + "\n"
    hint = "free some space or make the folder writable"
    raw = write_whole(folder / FILE_NAME, lambda file: file.write(content), hint)
    return [*write_pages(folder, findings), raw]


def write_pages(folder: Path, findings: Findings) -> list[Path]:
    """Writes ``report.html`` and ``report.md`` alone.

    Raises:
        UserError: The folder cannot be written.
    """
    page = run_page.page(findings)
    hint = f"{FILE_NAME} holds it all: then run 'python -m anomprof report' on the folder"
    return [
        write_whole(folder / name, lambda file, text=text: file.write(text), hint)  # type: ignore[misc]
        for name, text in (("report.html", html.render(page)), ("report.md", markdown.render(page)))
    ]


def rebuild(folder: Path) -> str:
    """Writes the pages anew from ``findings.json``; returns the summary for a terminal.

    Raises:
        UserError: There is no readable ``findings.json``, or the folder cannot be written.
    """
    findings = load(folder)
    write_pages(folder, findings)
    return finding_text.summary(findings)


def load(folder: Path) -> Findings:
    """Reads the findings in a folder.

    Raises:
        UserError: They are not there, or not readable.
    """
    path = folder / FILE_NAME
    try:
        return Findings.load(folder)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{path} is not a whole file of findings ({type(error).__name__}: {error}); run the script again "
            "under 'python -m anomprof run'",
            COULD_NOT_MEASURE,
        ) from error
