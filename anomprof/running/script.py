"""A script or module, executed in this process the way ``python`` executes it."""

from __future__ import annotations

import contextlib
import importlib.machinery
import io
import os
import pkgutil
import runpy
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from anomprof.errors import UserError


@dataclass(frozen=True)
class Script:
    """What stands after ``run`` on the command line.

    Attributes:
        target: A path as the user typed it, or the name of a module.
        arguments: What the script finds in ``sys.argv[1:]``.
        is_module: Whether ``target`` follows ``-m``.
    """

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    @property
    def name(self) -> str:
        """What a person would call it: ``train`` for ``examples/train.py``."""
        return self.target if self.is_module else Path(os.path.abspath(self.target)).stem  # noqa: PTH100

    @property
    def words(self) -> list[str]:
        """The words that follow ``python`` when it is started plainly."""
        return [*(["-m"] if self.is_module else []), self.target, *self.arguments]

    @property
    def path(self) -> str:
        """The script's absolute path, not normalised: what Python makes ``__file__`` of."""
        return os.path.join(os.getcwd(), self.target)  # noqa: PTH109, PTH118

    @property
    def is_container(self) -> bool:
        """Whether it is a folder or an archive, of which Python runs ``__main__.py``."""
        return not self.is_module and pkgutil.get_importer(self.path) is not None

    def check(self) -> None:
        """Refuses what cannot be started, before anything is written.

        Raises:
            UserError: There is no such file, or it cannot be read.
        """
        if self.is_module:
            return  # only importing its package, which is the script's business, would tell
        if self.target == "-":
            raise UserError("cannot watch a script that comes from standard input; save it to a file")
        try:
            if not stat.S_ISDIR(os.stat(self.path).st_mode):  # noqa: PTH116
                if stat.S_ISREG(os.stat(self.path).st_mode):  # noqa: PTH116
                    io.open_code(self.path).close()
            elif not any(Path(self.path).glob("__main__.py*")):
                raise UserError(f"the folder {self.target} holds no __main__.py; name a script in it")
        except OSError as error:
            hint = "; a module needs -m before its name" if not self.target.endswith(".py") else ""
            raise UserError(f"cannot open the script {self.target} ({error.strerror}){hint}") from error

    def run(self) -> None:
        """Executes it in the module ``sys.modules["__main__"]``; whatever it raises passes through."""
        if self.is_module:
            runpy._run_module_as_main(self.target)  # type: ignore[attr-defined]  # what -m calls
        elif self.is_container:
            runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
        else:
            self._run_file()

    def _run_file(self) -> None:
        path = self.path
        namespace = sys.modules["__main__"].__dict__
        compiled = path.endswith(".pyc")
        kind = importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader
        loader = kind("__main__", path)
        namespace.update(__file__=path, __cached__=None, __loader__=loader)
        try:
            code = loader.get_code("__main__") if compiled else _compile(path)
            assert code is not None
            exec(code, namespace)
        finally:
            flush()


def _compile(path: str) -> CodeType:
    with io.open_code(path) as file:
        # The __future__ statements of this file are not the script's.
        return compile(file.read(), path, "exec", dont_inherit=True)


def flush() -> None:
    """Flushes the standard streams as Python does at a script's end: whatever goes wrong is ignored."""
    for name in ("stderr", "stdout"):
        with contextlib.suppress(Exception):
            getattr(sys, name).flush()
