"""Our messages reach whoever was to read stderr, and never anybody else."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
from anomprof.console import Console
console = Console()
{}
print("wrote", console.write("a line\\n"))
console.say("a sentence")
console.flush()
"""


def run(source: str, **more):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(source)], capture_output=True, text=True, check=False, **more
    )


REDIRECTIONS = {
    "not at all": "",
    "to a file": "sys.stderr = open(os.devnull, 'w')",
    "to stdout": "sys.stderr = sys.stdout",
    "to nothing": "sys.stderr = None",
    "closed": "sys.stderr.close()",
    "the descriptor": "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)",
    "the descriptor closed": "os.close(2)",
    "broken": "sys.stderr = sys.__stderr__ = object()",
}


@pytest.mark.parametrize("source", REDIRECTIONS.values(), ids=REDIRECTIONS)
def test_a_redirected_stderr_does_not_redirect_us(source):
    ended = run(source)
    assert ended.stdout == "wrote 7\n"
    assert ended.stderr == "a line\nanomprof: a sentence\n"


def test_an_unfinished_line_of_the_scripts_comes_first():
    assert run("sys.stderr.write('begun '); sys.stdout.flush()").stderr.startswith("begun a line")


def test_files_that_take_the_place_of_ours_are_not_written_to(tmp_path):
    ended = run(
        f"os.closerange(3, 300); data = open({str(tmp_path / 'data')!r}, 'w'); os.dup2(data.fileno(), 200)"
    )
    assert ended.stdout == "wrote 7\n"
    assert (tmp_path / "data").read_text() == ""


def test_without_stderr_nothing_is_said():
    ended = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, SCRIPT.format("")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "wrote 7\n")


def test_a_reader_that_has_gone_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT.format("")],
        stdout=subprocess.PIPE, stderr=writing, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (ended.returncode, ended.stdout) == (0, "wrote 7\n")


def test_children_do_not_inherit_it_and_the_scripts_files_keep_their_numbers():
    ended = run(
        "print(os.open(os.devnull, os.O_RDONLY), os.get_inheritable(console.fileno()), console.isatty())"
    )
    assert ended.stdout.splitlines()[0] == "3 False False"


def test_what_cannot_be_encoded_is_spelled_out():
    assert "\\udcff" in run("console.say(chr(0xdcff))").stderr
