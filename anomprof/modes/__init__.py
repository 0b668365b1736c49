"""The table of modes, and how a name on the command line becomes a mode.

Add a built-in mode by writing its file and naming its class here. Users add theirs as
``file.py:ClassName`` after ``--modes``, or in a package through the entry point group
``anomprof.modes``.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

from anomprof.errors import UserError
from anomprof.modes.amp import AmpBf16, AmpFp16
from anomprof.modes.anomaly import Anomaly, AnomalyStacks
from anomprof.modes.baseline import Baseline, BaselineAgain
from anomprof.modes.checkpoint import Checkpoint, CheckpointReentrant
from anomprof.modes.clip import ClipNorm, ClipValue
from anomprof.modes.compile import Compile
from anomprof.modes.composition import Composition
from anomprof.modes.mode import Mode, ModeOptions
from anomprof.modes.profiler import AutogradProfiler, Profiler
from anomprof.modes.trace import TraceMode
from anomprof.names import closest
from anomprof.userfile import load, raised

ENTRY_POINT_GROUP = "anomprof.modes"

MODES: dict[str, type[Mode]] = {
    kind.name: kind
    for kind in (
        Baseline,
        BaselineAgain,
        Anomaly,
        AnomalyStacks,
        Profiler,
        AutogradProfiler,
        ClipNorm,
        ClipValue,
        AmpBf16,
        AmpFp16,
        Checkpoint,
        CheckpointReentrant,
        Compile,
        TraceMode,
    )
}

DEFAULT = (
    "baseline",
    "anomaly",
    "anomaly-stacks",
    "profiler",
    "profiler+anomaly",
    "clip-norm",
    "clip-value",
    "amp-bf16",
    "amp-fp16",
    "checkpoint",
)

ALL = (
    *DEFAULT,
    "autograd-profiler",
    "checkpoint-reentrant",
    "compile",
    "trace",
    "amp-bf16+clip-norm",
    "amp-bf16+checkpoint",
)

_LISTS = {"default": DEFAULT, "all": ALL}


def parse(text: str) -> tuple[str, ...]:
    """Returns the mode names in a comma-separated list; ``default`` and ``all`` stand for lists.

    The baseline always comes first, typed or not, since everything is compared with it.
    """
    names = ["baseline"]
    for word in (word.strip() for word in text.split(",")):
        if word:
            names.extend(_LISTS.get(word, (word,)))
    if len(names) == 1 and not text.strip(", "):
        raise UserError("--modes is empty; name modes separated by commas (see 'python -m anomprof list')")
    return tuple(dict.fromkeys(names))


def make(name: str, options: ModeOptions) -> Mode:
    """Makes the mode of a name, ``a+b`` included.

    Raises:
        UserError: No such mode, or parts that cannot be combined.
    """
    parts = [_make_one(part.strip(), options) for part in _split(name)]
    if len(parts) == 1:
        return parts[0]
    return Composition(name, parts)


def without_profiler(mode: Mode) -> Mode | None:
    """Returns what is left of a mode that holds torch's profiler, or None where nothing is left."""
    parts = [part for part in getattr(mode, "parts", (mode,)) if not part.holds_profiler]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Composition("+".join(part.name for part in parts), parts)


def known() -> dict[str, type[Mode]]:
    """Returns built-in modes and those of installed packages, by name."""
    found = dict(MODES)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(entry.name, _checked(entry.load(), f"entry point {entry.name}"))
    return found


def _split(name: str) -> Sequence[str]:
    parts = [part.strip() for part in name.split("+")]
    if not all(parts):
        raise UserError(f"{name!r} names no mode beside a '+'; write it as in amp-bf16+clip-norm")
    return parts


def _make_one(name: str, options: ModeOptions) -> Mode:
    if ".py:" in name:
        kind, path = load(name, "mode")
        try:
            return _checked(kind, name)(options)
        except Exception as error:
            raise raised(error, f"making the mode {name}", path) from error
    kinds = known()
    if name not in kinds:
        raise UserError(f"no mode is called {name!r}{closest(name, kinds)}; known are {', '.join(kinds)}")
    return kinds[name](options)


def _checked(kind: object, where: str) -> type[Mode]:
    if not (isinstance(kind, type) and issubclass(kind, Mode)):
        raise UserError(f"{where} is not a subclass of anomprof.Mode; see 'anomprof/modes/mode.py'")
    return kind
