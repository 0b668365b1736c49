"""What is typed after ``run``: options of ours, a script, and words that are its own."""

import pytest
from click.testing import CliRunner

from anomprof.running.command import run_command
from tests.running.side_by_side import log, watched, write


def start(folder):
    """What the watcher was started with."""
    return log(folder)[0]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "import sys; print(sys.argv)")
    write(tmp_path, "", "package/__init__.py")
    write(tmp_path, "import sys; print(sys.argv[1:])", "package/train.py")
    return tmp_path


def test_words_after_the_script_are_the_scripts(folder):
    words = ["--out", "x", "-m", "--help", "-f", "--stop", "--fail-on", "--", "--x=1", "", "a b"]
    ended = watched(folder, "script.py", *words, options=["--out", "here", "--on-bad", "stop"])
    assert ended.stdout == f"{['script.py', *words]}\n"
    assert start(folder) == (
        "start True stop python -m anomprof run --out here --on-bad stop script.py "
        "--out x -m --help -f --stop --fail-on -- --x=1 '' 'a b'"
    )


def test_a_double_dash_ends_our_options(folder):
    assert watched(folder, "--", "script.py", "--").stdout == "['script.py', '--']\n"


def test_a_module_may_be_named(folder):
    ended = watched(folder, "-m", "package.train", "-m", "--out", "y", options=["--fail-on", "error"])
    assert ended.stdout == "['-m', '--out', 'y']\n"
    assert start(folder).endswith("--force --fail-on error -m package.train -m --out y")


def test_the_default_folder_is_made_before_the_script_runs(folder):
    write(folder, "import os; print(os.listdir('reports')); os.chdir('/')")
    ended = watched(folder, "script.py", options=["--out", "reports/given"])
    assert ended.stdout == "['given']\n"


MISTAKES = [
    ([], "Missing argument 'SCRIPT'"),
    (["--fail-on", "warning", "script.py"], "anomaly"),
    (["--lr", "1", "script.py"], "No such option '--lr'"),
    (["-c", "print()"], "No such option '-c'"),
    (["-"], "standard input"),
    (["nothing.py"], "nothing.py"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=lambda value: " ".join(value) or "nothing")
def test_a_mistake_is_one_sentence_and_status_2(folder, words, said):
    ended = watched(folder, options=["--out", "new", *words])
    assert ended.returncode == 2
    assert said.replace("'", "") in ended.stderr.replace("'", "").replace(": --", " --").replace(
        ": -c", " -c"
    )
    assert len(ended.stderr.splitlines()) == 1
    assert not (folder / "new").exists()


def test_a_run_is_not_overwritten_and_the_script_not_started(folder):
    (folder / "out").mkdir()
    (folder / "out" / "findings.json").write_text("")
    ended = watched(folder, "script.py", options=["--out", "out"])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--force" in ended.stderr
    assert watched(folder, "script.py", options=["--out", "out", "-f"]).returncode == 0


def test_help_teaches():
    text = CliRunner().invoke(run_command, ["--help"]).output
    for word in (
        "--out",
        "--force",
        "--detect",
        "--on-bad",
        "--fail-on",
        "-m",
        "python -m anomprof run train.py",
    ):
        assert word in text
