"""How deeply a line is nested in the loops of its function."""

from __future__ import annotations

import ast
import functools
import linecache

from anomprof.tracing.frames import Point, line_of


def depth_of(point: Point) -> int:
    """Returns the number of loops around a line within its function; 0 where the source cannot be read."""
    code, _ = point
    return dict(_depths(code.co_filename)).get(line_of(point), 0)


@functools.lru_cache(maxsize=32)
def _depths(file: str) -> tuple[tuple[int, int], ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    depths: dict[int, int] = {}
    _visit(tree, 0, depths)
    return tuple(depths.items())


def _visit(node: ast.AST, depth: int, depths: dict[int, int]) -> None:
    line = getattr(node, "lineno", None)
    if line is not None and isinstance(node, ast.stmt):
        for number in range(line, (node.end_lineno or line) + 1):
            depths[number] = depth
    inside = depth
    if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
        inside = depth + 1
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        inside = 0
    for child in ast.iter_child_nodes(node):
        _visit(child, inside, depths)
