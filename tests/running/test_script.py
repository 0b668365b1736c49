"""What a script can find out about how it was started is what plain Python tells it."""

import os
import py_compile
import subprocess
import sys
import zipfile

import pytest

from anomprof.errors import UserError
from anomprof.running.script import Script
from tests.running.side_by_side import log, plain, same, watched, write

DETAILS = """
import linecache, os, sys, inspect
main = sys.modules["__main__"]
for name, value in list(globals().items()):
    if name == "__loader__":
        value = type(value), getattr(value, 'name', None), getattr(value, 'path', None)
    elif name == "__spec__" and value is not None:
        value = value.name, value.origin, value.cached, value.parent, value.submodule_search_locations
    print(name, value)
print(sys.argv, sys.path, sys.orig_argv, sys.flags, sys.warnoptions, os.getcwd(), sys.executable)
print(main.__dict__ is globals(), list(sys.modules).index("__main__") < 30)
print((lambda: 0).__code__.co_filename, (lambda: 0).__code__.co_flags)
print(sorted(name for name in os.environ if name != "_"))
print(sys.excepthook, sys.unraisablehook, sys.displayhook, sys.gettrace(), sys.getprofile())
print(sys.getrecursionlimit(), sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
def function():
    return 41
print(inspect.getsource(function), inspect.getfile(function), inspect.getmodule(function))
print(linecache.getline(__file__, 2))
"""

FORMS = {
    "a name": ["script.py"],
    "a relative path": ["./sub/../sub/script.py"],
    "a link": ["link.py"],
    "no suffix": ["script"],
    "a folder": ["folder"],
    "a folder with a slash": ["./folder/"],
    "an archive": ["archive.zip"],
    "a module": ["-m", "sub.script"],
    "a package": ["-m", "package"],
    "a module in a package": ["-m", "package.inner.module"],
}


@pytest.fixture
def forms(tmp_path):
    for name in ("script.py", "script", "sub/script.py", "folder/__main__.py", "package/__main__.py"):
        write(tmp_path, DETAILS, name)
    write(tmp_path, "", "package/__init__.py")
    write(tmp_path, "print('inner')", "package/inner/__init__.py")
    write(
        tmp_path,
        "from ..__main__ import main as outer\nfrom . import __name__\n" + DETAILS,
        "package/inner/module.py",
    )
    (tmp_path / "link.py").symlink_to("sub/script.py")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", DETAILS)
    return tmp_path


@pytest.mark.parametrize("words", FORMS.values(), ids=FORMS)
def test_a_script_finds_what_plain_python_shows_it(forms, words):
    ended = same(forms, None, *words, "--out", "x", "-m", "--help", "--", "-")
    assert ended.returncode == 0, ended.stderr


def test_an_absolute_path_gives_the_same_details(forms):
    same(forms, None, forms / "sub" / "script.py")


@pytest.mark.parametrize("flag", ["-O", "-u", "-P", "-B", "-Wignore", "-Xdev", "-I"])
def test_flags_of_the_interpreter_hold_for_the_script(forms, flag):
    if flag == "-P" and sys.version_info < (3, 11):
        pytest.skip("came with Python 3.11")
    same(forms, None, "script.py", flags=[flag])
    same(forms, None, "folder", flags=[flag])


def test_a_compiled_script_runs(forms):
    py_compile.compile(str(forms / "sub" / "script.py"), str(forms / "script.pyc"))
    same(forms, None, "script.pyc")


def test_neither_future_statements_nor_imports_of_ours_leak(tmp_path):
    same(
        tmp_path,
        """
        import __future__, sys
        def function(x: int): ...
        print(function.__annotations__)
        print("torch" in sys.modules, "numpy" in sys.modules, "logging" in sys.modules)
        print("multiprocessing" in sys.modules, "concurrent" in sys.modules, "psutil" in sys.modules)
        """,
    )


ENCODINGS = {
    "a cookie": "# -*- coding: latin-1 -*-\nprint(ascii('é'))\n".encode("latin-1"),
    "a byte order mark": b"\xef\xbb\xbf" + "print(ascii('é'))\n".encode(),
    "Windows line ends": b"print(1)\r\nprint('''a\r\nb''')\r\n",
    "no last line end": b"print(1)",
    "nothing": b"",
    "a form feed": b"\x0cprint(1)\n",
    "a shebang": b"#!/usr/bin/env python\nprint(1)\n",
}


@pytest.mark.parametrize("content", ENCODINGS.values(), ids=ENCODINGS)
def test_source_is_decoded_as_python_does(tmp_path, content):
    (tmp_path / "script.py").write_bytes(content)
    same(tmp_path, None, "script.py")


@pytest.mark.parametrize(
    "source",
    ["x = (\n", "def f():\nreturn 1\n", "x = 1\n  y = 2\n", "return\n", "f'{'\n", "print 1\n", "é = \n"],
)
def test_a_syntax_error_looks_as_ever(tmp_path, source):
    (tmp_path / "script.py").write_text(source)
    assert same(tmp_path, None, "script.py").returncode == 1


def test_a_syntax_error_in_an_imported_module_looks_as_ever(tmp_path):
    write(tmp_path, "x = (", "broken.py")
    same(tmp_path, "import broken")


def test_classes_of_the_script_are_pickled(tmp_path):
    same(
        tmp_path,
        """
        import copy, dataclasses, pickle, typing
        @dataclasses.dataclass
        class Point:
            x: "int" = 1
        print(pickle.loads(pickle.dumps(Point(3))), pickle.dumps(Point), typing.get_type_hints(Point))
        """,
    )


PROCESSES = """
import multiprocessing, os, sys
class Point:
    x = 3
def work(point, queue):
    queue.put((__name__, point.x, sys.argv, sys.path[0], os._exit.__module__))
if __name__ == "__main__":
    for method in ("spawn", "fork", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(Point(), queue))
        process.start()
        print(method, queue.get(timeout=60))
        process.join()
        print(process.exitcode)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(abs, [-1, -2]))
else:
    print("imported again as", __name__, flush=True)  # before the pool kills it
"""


def test_processes_of_the_script_are_started_as_ever_and_not_watched(tmp_path):
    same(tmp_path, PROCESSES, "--flag")
    assert log(tmp_path)[1:] == ["finish NoneType", "finish NoneType"]


def test_processes_of_a_module_are_started_as_ever(tmp_path):
    write(tmp_path, "", "package/__init__.py")
    write(tmp_path, "from . import __name__ as outer\n" + PROCESSES, "package/train.py")
    same(tmp_path, None, "-m", "package.train", "--flag")


def test_workers_of_a_data_loader_are_not_watched(tmp_path):
    pytest.importorskip("torch")
    same(
        tmp_path,
        """
        import torch
        from torch.utils.data import DataLoader, Dataset
        class Squares(Dataset):
            def __len__(self): return 6
            def __getitem__(self, index): return torch.tensor(float(index) ** 2)
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                for batch in DataLoader(Squares(), 3, num_workers=1, multiprocessing_context=method):
                    print(method, batch)
        """,
    )
    assert log(tmp_path)[1:] == ["install True", "finish NoneType", "finish NoneType"]


def test_modules_and_data_beside_the_script_and_in_the_working_directory_are_found(tmp_path):
    write(tmp_path, "VALUE = 'beside the script'", "sub/neighbour.py")
    write(tmp_path, "hello", "data.txt")
    write(tmp_path, "import neighbour\nprint(neighbour.VALUE, open('data.txt').read())", "sub/script.py")
    same(tmp_path, None, "sub/script.py")


def test_a_modules_package_is_imported_first_and_its_errors_are_its_own(tmp_path):
    write(tmp_path, "import nothing_like_it", "broken/__init__.py")
    write(tmp_path, "", "broken/train.py")
    same(tmp_path, None, "-m", "broken.train")
    same(tmp_path, None, "-m", "broken.missing")
    same(tmp_path, None, "-m", "no_such_module")
    same(tmp_path, None, "-m", "no_such_package.module")


def test_standard_input_is_the_scripts(tmp_path):
    same(tmp_path, "import sys; print(input(), sys.stdin.read())", input="one\ntwo\n")


def test_what_is_left_at_exit_is_deleted_as_ever(tmp_path):
    same(
        tmp_path,
        """
        class Noisy:
            def __init__(self, name): self.name = name
            def __del__(self, say=print): say("deleted", self.name)
        first = Noisy("first")
        second = Noisy("second")
        cycle = Noisy("cycle"); cycle.self = cycle
        """,
    )


def test_a_module_beside_the_script_goes_before_one_that_we_have_loaded(tmp_path):
    write(tmp_path, "WHOSE = 'mine'", "sub/click.py")
    write(tmp_path, "WHOSE = 'mine'", "sub/shlex/__init__.py")
    write(tmp_path, "import click, shlex\nprint(click.WHOSE, shlex.WHOSE)", "sub/script.py")
    same(tmp_path, None, "sub/script.py")


def test_what_cannot_be_run_is_refused_in_one_sentence(tmp_path):
    write(tmp_path, "x", "empty/other.py")
    for target, said in [
        ("-", "standard input"),
        ("nothing.py", "cannot open the script nothing.py (No such file or directory)"),
        ("package.module", "needs -m"),
        ("empty", "holds no __main__.py"),
    ]:
        ended = watched(tmp_path, target, options=["--out", "new"])
        assert ended.returncode == 2
        assert said in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (Script("sub/train.py"), "train"),
        (Script("pkg.train", is_module=True), "pkg.train"),
        (Script("/a/folder/"), "folder"),
    ],
)
def test_a_script_has_the_name_a_person_would_use(script, name):
    assert script.name == name


def test_a_script_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path, "")

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("io.open_code", refuse)
    with pytest.raises(UserError, match="Permission denied"):
        Script(str(path)).check()


def test_a_pipe_is_a_script_too(tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    for run in (plain, watched):
        code = f"open({str(fifo)!r}, 'w').write('print(__file__, __name__)')"
        with subprocess.Popen([sys.executable, "-c", code]):
            ended = run(tmp_path, "pipe")
        assert ended.stdout == f"{fifo} __main__\n", ended.stderr
