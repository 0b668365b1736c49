"""Imports go one way, and reading never loads torch."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anomprof

PACKAGE = Path(anomprof.__file__).parent

# From the ground up; a module may import from lower layers and from its own folder.
LAYERS = (
    {"errors", "console", "names", "stats", "findings"},
    {"record", "advice"},
    {"environment", "workload", "sites", "userfile", "replay"},
    {"results", "devices"},
    {"instruments", "criticism"},
    {"report"},
    {"tracing"},
    {"guarding"},
    {"workloads", "modes"},
    {"harness", "listing", "watching"},
    {"running"},
    {"cli"},
    {"__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(source: str) -> set[str]:
    """First names below anomprof that a source file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "anomprof":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("anomprof.")}
    return {name for name in found if name in LEVEL}


def test_every_module_has_a_layer():
    assert {part(path) for path in modules()} == set(LEVEL)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    here = part(path)
    wrong = {name for name in imported(path.read_text()) if name != here and LEVEL[name] >= LEVEL[here]}
    assert not wrong, f"{here} imports {wrong} from its own layer or above"


def test_the_import_reader_sees_every_form_of_import():
    source = """
import anomprof.results
from anomprof.harness.rounds import Harness
def late():
    from anomprof import report, __version__
"""
    assert imported(source) == {"results", "harness", "report"}


# __version__ and the like are public.
PRIVATE = re.compile(r"_[A-Za-z]\w*$")


def private_torch_names(source: str) -> list[str]:
    """Dotted names such as torch._C or torch.utils._pytree."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            words = node.module.split(".") + [alias.name for alias in node.names]
            names += [node.module for word in words if PRIVATE.match(word)]
        elif isinstance(node, ast.Attribute):
            words = ast.unparse(node).split(".")
            if words[0] == "torch" and any(PRIVATE.match(word) for word in words):
                names.append(".".join(words))
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_sites_touches_private_names_of_torch(path):
    found = private_torch_names(path.read_text())
    assert bool(found) == (part(path) == "sites"), found


TORCH_FREE = (
    *("cli", "report", "results", "stats", "record", "criticism", "harness.plan", "harness.schedule"),
    *("running.command", "watching"),
)


@pytest.mark.parametrize("name", TORCH_FREE)
def test_what_reads_records_never_loads_torch(name):
    code = f"import sys, anomprof.{name}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_check_for_torch_notices_torch():
    code = "import sys, anomprof.harness.rounds; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1


def test_the_public_names_are_these():
    assert anomprof.__all__ == ["Mode", "Proof", "Workload", "__version__", "trace"]
    assert all(hasattr(anomprof, name) for name in anomprof.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Workloads'"):
        anomprof.Workloads  # noqa: B018
