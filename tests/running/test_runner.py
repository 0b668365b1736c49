"""The runner as a function, in a process that lives on."""

import atexit
import os
import sys

import pytest

from anomprof.running.ending import INTERRUPTED
from anomprof.running.runner import watch_script
from anomprof.running.script import Script
from tests.running.side_by_side import write


class Calls(list):
    def install(self):
        self.append("install")

    def finish(self):
        self.append("finish")


@pytest.fixture
def calls():
    return Calls()


def state():
    return (
        sys.argv,
        sys.orig_argv,
        sys.path,
        list(sys.path),
        sys.modules["__main__"],
        os._exit,
        list(sys.meta_path),
    )


ENDS = {
    "1 / 0": 1,
    "raise KeyboardInterrupt": INTERRUPTED,
    "import sys; sys.exit('words')": 1,
    "import sys; sys.exit(-1)": 255,
    "import sys; sys.path = []; sys.argv.clear(); sys.modules.pop('__main__')": 0,
}


@pytest.mark.parametrize(("source", "status"), ENDS.items())
def test_a_process_that_lives_on_is_as_it_was(tmp_path, calls, source, status, monkeypatch):
    before = state()
    handlers = []
    monkeypatch.setattr(atexit, "register", handlers.append)
    monkeypatch.setattr(atexit, "unregister", handlers.remove)
    path = write(tmp_path, source)
    assert watch_script(Script(str(path), ("x",)), calls.install, calls.finish, lives_on=True) == status
    assert state() == before
    assert handlers == []
    assert calls[-1] == "finish"
    assert calls.count("finish") == 1


def test_install_is_called_at_once_where_torch_is_loaded(tmp_path, calls, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    path = write(tmp_path, "")
    watch_script(Script(str(path)), calls.install, calls.finish, lives_on=True)
    assert calls == ["install", "finish"]


def test_modules_that_the_script_shadows_come_back(tmp_path, calls):
    import shlex

    write(tmp_path, "MINE = True", "shlex.py")
    path = write(tmp_path, "import shlex; assert shlex.MINE")
    assert watch_script(Script(str(path)), calls.install, calls.finish, lives_on=True) == 0
    assert sys.modules["shlex"] is shlex
    assert not hasattr(shlex, "MINE")


def test_a_status_from_finish_replaces_the_scripts(tmp_path):
    path = write(tmp_path, "import sys; sys.exit(5)")
    assert watch_script(Script(str(path)), lambda: None, lambda: 1, lives_on=True) == 1
