"""A run's folder is chosen once, kept from being overwritten, and shared among ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anomprof.errors import UserError
from anomprof.findings import Findings
from anomprof.running.output import prepare_folder
from anomprof.running.script import Script
from anomprof.watching.ranks import Ranks

TRAIN = Script("examples/train.py")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepare(out=None, script=TRAIN, environ=None, **more):
    return prepare_folder(script, None if out is None else Path(out), environ=environ or {}, **more)


def test_the_default_names_the_script_and_the_time():
    folder = prepare()
    assert folder.is_absolute()
    assert folder.parent == Path.cwd() / "reports"
    assert folder.name.startswith("train-2")
    assert folder.name.endswith("Z")
    assert list(folder.iterdir()) == []


def test_two_runs_in_one_second_get_two_folders():
    folders = {prepare() for _ in range(3)}
    assert len(folders) == 3


@pytest.mark.parametrize(
    ("script", "name"),
    [(Script("a.b", is_module=True), "a.b-"), (Script("é ü/ö?.py"), "script-"), (Script("."), "test")],
)
def test_any_script_gives_a_plain_name(script, name):
    folder = prepare(script=script)
    assert folder.name.startswith(name)
    assert folder.name.isascii()


@pytest.mark.parametrize("mark", ["findings.json", "record.sqlite"])
def test_a_folder_that_holds_a_run_is_kept_unless_forced(here, mark):
    (here / "out").mkdir()
    for name in (mark, "report.html", "mine.txt"):
        (here / "out" / name).write_text("")
    with pytest.raises(UserError, match=rf"^out already holds a run \({mark}\).*--out.*--force") as raised:
        prepare("out")
    assert raised.value.exit_code == 2
    assert prepare("out", force=True) == here / "out"
    assert [path.name for path in (here / "out").iterdir()] == ["mine.txt"]


def test_files_of_others_are_never_removed(here):
    for name in ("results.json", "report.html", "steps.csv"):
        (here / name).write_text("mine")
    prepare(".", force=True)
    assert {path.name for path in here.iterdir()} == {"results.json", "report.html", "steps.csv"}


def test_a_file_is_no_folder(here):
    (here / "out").write_text("")
    for out in ("out", "out/below"):
        with pytest.raises(UserError):
            prepare(out)


def test_what_cannot_be_written_is_one_sentence_and_status_3(here, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    for out in (None, "out"):
        with pytest.raises(UserError, match=r"cannot write to .*\(Permission denied\); .*--out") as raised:
            prepare(out)
        assert raised.value.exit_code == 3


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ranks_share_a_folder_whichever_starts_first(here, order):
    first = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500"}
    second = {**first, "RANK": "1"}
    ranks = [(first, here / "out"), (second, here / "out" / "rank-1")]
    for environ, folder in (ranks[rank] for rank in order):
        assert prepare("out", environ=environ) == folder
        Ranks(here / "out", int(environ["RANK"]), 2).write(Findings(1))  # its own, and the merged ones
    for environ in (first, second):  # a later run
        with pytest.raises(UserError, match="already holds a run"):
            prepare("out", environ=environ)
    prepare("out", environ=first, force=True)
    assert not (here / "out" / "rank-0" / "findings.json").exists()
    assert (here / "out" / "rank-1" / "findings.json").exists()  # a matter of rank 1
    prepare("out", environ=second, force=True)
    assert not (here / "out" / "rank-1" / "findings.json").exists()


def test_ranks_keep_a_run_of_one_process(here):
    (here / "out").mkdir()
    (here / "out" / "findings.json").write_text("")
    with pytest.raises(UserError, match=r"^out already holds a run \(findings.json\)"):
        prepare("out", environ={"RANK": "0", "WORLD_SIZE": "2"})


def test_ranks_agree_on_the_default_and_later_runs_do_not(here):
    code = (
        "from anomprof.running.output import prepare_folder; from anomprof.running.script import Script;"
        "print(prepare_folder(Script('train.py'), None))"
    )
    launcher = (
        "import os, subprocess, sys\nfor rank in '012':\n"
        f"    subprocess.run([sys.executable, '-c', {code!r}], env={{**os.environ, 'RANK': rank}})"
    )
    environ = {**os.environ, "WORLD_SIZE": "3", "MASTER_PORT": "29500"}
    names = []
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", launcher], env=environ, capture_output=True, text=True, check=False
        )
        assert len(ended.stdout.splitlines()) == 3, ended.stderr
        shared, *others = ended.stdout.split()
        assert others == [f"{shared}/rank-1", f"{shared}/rank-2"]
        names.append(shared)
    assert names[0] != names[1]


def test_several_machines_agree_by_the_launchers_names():
    environ = {
        "RANK": "5", "WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "2", "MASTER_PORT": "4711",
        "TORCHELASTIC_RUN_ID": "job 42",
    }  # fmt: skip
    assert prepare(environ=environ) == Path.cwd() / "reports" / "train-job-42-4711" / "rank-5"


def test_a_restart_keeps_what_the_failure_left(here):
    environ = {"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "1"}
    (here / "out").mkdir()
    (here / "out" / "findings.json").write_text("")
    assert prepare("out", environ=environ) == here / "out" / "restart-1"
