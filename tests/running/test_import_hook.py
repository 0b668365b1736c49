"""The watcher is told when torch has been imported, and the script cannot tell that somebody waited."""

import importlib
import importlib.machinery
import importlib.util
import sys
import zipfile

import pytest

from anomprof.running.import_hook import when_imported
from tests.running.side_by_side import log, same, watched, write

# Stands in for torch, which takes seconds to import; what counts is the name.
FAKE_TORCH = """
import sys, warnings
from torch import part
print("torch is being imported", __spec__.loader.__class__, sorted(vars(__spec__.loader)), __spec__.origin)
version = 3
"""

SHOW = """
import torch, sys, importlib.util
print(sorted(vars(torch)), sorted(vars(torch.__loader__)), torch.__loader__ is torch.__spec__.loader)
print(type(torch.__spec__), torch.__spec__.loader_state, torch.__spec__.has_location, torch.__file__)
print([type(finder) for finder in sys.meta_path], torch.__spec__._initializing, torch.part.VALUE)
print(importlib.util.find_spec("torch") is torch.__spec__)
"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, FAKE_TORCH, "torch/__init__.py")
    write(tmp_path, "VALUE = 8", "torch/part.py")
    return tmp_path


WAYS = {
    "import": "import torch",
    "from": "from torch import part",
    "a part of it": "import torch.part",
    "import_module": "import importlib; importlib.import_module('torch')",
    "__import__": "__import__('torch')",
    "a thread": "import threading as t; t = t.Thread(target=__import__, args=['torch']); t.start(); t.join()",
    "after asking": "import importlib.util as u; print(type(u.find_spec('torch').loader)); import torch",
    "lazily": """import importlib.util, sys
spec = importlib.util.find_spec('torch')
loader = importlib.util.LazyLoader(spec.loader)
spec.loader = loader
module = importlib.util.module_from_spec(spec)
sys.modules['torch'] = module
loader.exec_module(module)
print('not yet')
print(module.version)""",
    "by hand": """import importlib.util, sys
spec = importlib.util.find_spec('torch')
module = sys.modules['torch'] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)""",
}


@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS)
def test_every_way_of_importing_is_noticed_once_and_leaves_no_trace(folder, source):
    ended = same(folder, source + "\n" + (SHOW if "lazily" not in source and "loader" not in source else ""))
    assert ended.returncode == 0, ended.stderr
    assert log(folder)[1:] == ["install True", "finish NoneType", "finish NoneType"]


def test_asking_whether_torch_is_there_is_not_importing_it(folder):
    same(folder, "import importlib.util; print(importlib.util.find_spec('torch').origin)")
    assert log(folder)[1:] == ["finish NoneType", "finish NoneType"]


BROKEN = {
    "missing": None,
    "a missing library": "import ctypes; ctypes.CDLL('libnothing.so')",
    "a missing module": "import nothing_like_it",
    "an error": "def f(): 1 / 0\nf()",
    "a syntax error": "x = (",
    "an exit": "raise SystemExit(3)",
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_failing_import_fails_as_ever(tmp_path, source):
    if source is None:
        write(tmp_path, "import sys; sys.path = sys.path[:1]\nimport torch")
    else:
        write(tmp_path, source, "torch/__init__.py")
        write(tmp_path, "import torch")
    same(tmp_path, None, "script.py")
    assert not any(line.startswith("install") for line in log(tmp_path))


def test_a_second_try_that_works_is_noticed(folder):
    write(
        folder, "import os\nif 'READY' not in os.environ: raise ImportError('not ready')", "torch/__init__.py"
    )
    same(
        folder,
        """
        import os
        for _ in range(2):
            try:
                import torch
            except ImportError as error:
                print(error, error.__traceback__.tb_next.tb_frame.f_code.co_filename)
            os.environ["READY"] = "1"
        """,
    )
    assert log(folder)[1] == "install True"


def test_the_position_in_a_warning_is_the_scripts(folder):
    write(
        folder, "import warnings; warnings.warn('old', DeprecationWarning, stacklevel=2)", "torch/__init__.py"
    )
    same(folder, "import torch", flags=["-Wdefault"])


def test_torch_in_an_archive_is_noticed(tmp_path):
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as archive:
        archive.writestr("torch/__init__.py", "print('from the archive')")
    same(
        tmp_path,
        "import sys; sys.path.insert(0, 'site.zip'); import torch; print(vars(torch.__loader__).keys())",
    )
    assert log(tmp_path)[1] == "install True"


def test_a_folder_named_torch_is_no_torch(tmp_path):
    (tmp_path / "torch").mkdir()
    same(tmp_path, "import sys; sys.path = sys.path[:1]; import torch; print(torch.__path__)")
    assert log(tmp_path)[1:] == ["finish NoneType", "finish NoneType"]


def test_an_error_in_install_is_one_sentence_and_the_script_goes_on(folder):
    write(folder, "import torch; print(torch.version)")
    ended = watched(folder, "script.py", env={"FAKE_INSTALL": "raise RuntimeError('no such\\nhook')"})
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1] == "3"
    assert ended.stderr == (
        "anomprof: cannot watch this script (RuntimeError: no such hook); it runs on unwatched\n"
    )


def test_a_forked_child_that_imports_torch_is_not_watched(folder):
    same(
        folder,
        """
        import os
        child = os.fork()
        if not child:
            import torch
            os._exit(0)
        os.waitpid(child, 0)
        """,
    )
    assert log(folder)[1:] == ["finish NoneType", "finish NoneType"]


def test_a_module_that_is_there_already_is_not_waited_for():
    seen = []
    before = list(sys.meta_path)
    when_imported("json", seen.append)
    assert seen == [sys.modules["json"]]
    assert sys.meta_path == before


class Marking:
    """A hook of somebody else's that works as ours does."""

    def __init__(self, seen):
        self.seen = seen

    def find_spec(self, name, path=None, target=None):
        if name != "awaited_by_two":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            self.seen.append("theirs")

        spec.loader.exec_module = exec_module
        return spec


def test_another_hook_on_the_same_loader_is_called_too(tmp_path, monkeypatch):
    write(tmp_path, "", "awaited_by_two.py")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    monkeypatch.setattr(sys, "meta_path", [Marking(seen), *sys.meta_path])
    when_imported("awaited_by_two", lambda module: seen.append("ours"))
    importlib.util.find_spec("awaited_by_two")
    importlib.import_module("awaited_by_two")
    assert seen == ["theirs", "ours"]


def test_a_hook_that_is_removed_is_never_called(tmp_path, monkeypatch):
    write(tmp_path, "", "awaited_by_nobody.py")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    when_imported("awaited_by_nobody", seen.append).remove()
    importlib.import_module("awaited_by_nobody")
    assert seen == []
