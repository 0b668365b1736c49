"""Which lines of whose code are running: frames of the user, of libraries, and of torch's engine."""

from __future__ import annotations

import linecache
import os
import site
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from anomprof.findings import Frame

#: One place in code: the code object and the index of the running instruction. Kept instead of file and
#: line because reading those costs ten times as much and is needed only for what is reported.
Point = tuple[CodeType, int]

LIBRARY, USER, BOUNDARY, HANDLER, ENGINE = range(5)

_MOST_FRAMES = 12  # of the user's, per place: enough to see how the run came there


class FrameReader:
    """Reads the user's frames from the stack.

    Args:
        boundaries: Code at which reading stops, since what lies beyond is known: calls of modules.
        engine: Code of the call that runs the autograd engine.
        own_code: Returns files and folders of the user's code, also where they lie among installed
            packages; nothing as long as they are not known.

    Attributes:
        stand_ins: Code of ours that repeats a call of the user's: what returns the points of that call.
    """

    def __init__(
        self,
        boundaries: tuple[CodeType, ...],
        engine: CodeType,
        own_code: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._kinds: dict[CodeType, int] = dict.fromkeys(boundaries, BOUNDARY)
        self._kinds[engine] = ENGINE
        self._libraries = _library_folders()
        self._own_code = own_code
        self._own: tuple[str, ...] = ()
        self.stand_ins: dict[CodeType, Callable[[], tuple[Point, ...]]] = {}

    def stop_at(self, code: CodeType) -> None:
        """Makes code of ours one beyond which nothing is read."""
        self._kinds[code] = BOUNDARY

    def stand_in(self, code: CodeType, points: Callable[[], tuple[Point, ...]]) -> None:
        """Lets code of ours stand for the user's that it repeats."""
        self._kinds[code] = BOUNDARY
        self.stand_ins[code] = points

    def kind(self, code: CodeType) -> int:
        """Returns whose code it is: one of the constants above."""
        known = self._kinds.get(code)
        if known is None:
            known = self._kinds[code] = self._classify(code)
        return known

    def read(self, frame: FrameType | None) -> tuple[Point, ...]:
        """Returns the user's points from ``frame`` outwards to the next module call, innermost first.

        Frames inside a handler of the user's own dispatch or function mode are left out: the line of
        interest is the one whose op passes through it.
        """
        kinds = self._kinds
        points: list[Point] = []
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(code)
            if kind is None:
                kind = self.kind(code)
            if kind == USER:
                points.append((code, frame.f_lasti))
                if len(points) >= _MOST_FRAMES:
                    break
            elif kind == BOUNDARY:
                if code in self.stand_ins:
                    points.extend(self.stand_ins[code]())
                break
            elif kind == HANDLER:
                points.clear()
            frame = frame.f_back
        return tuple(points)

    def read_in_engine(self, frame: FrameType | None) -> tuple[bool, tuple[Point, ...]]:
        """Returns whether Python code runs inside the engine, and the user's points there."""
        has_python = False
        points: list[Point] = []
        while frame is not None:
            code = frame.f_code
            kind = self.kind(code)
            if kind == ENGINE:
                return has_python, tuple(points)
            if kind == USER:
                points.append((code, frame.f_lasti))
            elif kind == HANDLER:
                points.clear()
            has_python = True
            frame = frame.f_back
        # The engine's own thread: its first Python frame is whatever the engine called.
        return has_python, tuple(points)

    def _classify(self, code: CodeType) -> int:
        if code.co_name in ("__torch_dispatch__", "__torch_function__"):
            return HANDLER
        file = code.co_filename
        if file.startswith("<"):  # made from text by exec: no line can be shown, except of what was typed
            return USER if file.startswith(("<stdin", "<ipython")) else LIBRARY
        path = os.path.abspath(file)  # noqa: PTH100  (ten times as fast, and follows no symbolic link)
        self._own = self._own or self._own_code()
        if path.startswith(self._own):
            return USER
        return LIBRARY if path.startswith(self._libraries) else USER


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages())
    folders.add(site.getusersitepackages())
    folders.add(str(Path(__file__).resolve().parents[1]))  # our own
    real = {os.path.realpath(folder) for folder in folders}
    return tuple(folder.rstrip(os.sep) + os.sep for folder in folders | real if folder)


def line_of(point: Point) -> int:
    """Returns the source line of a point."""
    code, instruction = point
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= instruction < end and number is not None:
            return number
    return line


def describe(point: Point, folder: str) -> Frame:
    """Returns file, line, function and source of a point.

    Args:
        point: The point.
        folder: Files below it are named relative to it.
    """
    code = point[0]
    line = line_of(point)
    return Frame(shorten(code.co_filename, folder), line, code.co_name, source(code.co_filename, line))


def source(file: str, line: int) -> str:
    """Returns a source line without indentation; "" where the file cannot be read."""
    return linecache.getline(file, line).strip()


def shorten(file: str, folder: str) -> str:
    """Returns the path relative to ``folder`` where it lies below it."""
    try:
        path = Path(file).resolve()
        return str(path.relative_to(Path(folder).resolve()))
    except (ValueError, OSError):
        return file
