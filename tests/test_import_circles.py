"""Modules import each other in one direction, also where an import stands in a function or serves types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / "lmms_eval").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Modules that a file imports anywhere; ``from package import module`` is an import of the module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in known else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_no_module_is_imported_by_what_it_imports() -> None:
    known = modules()
    graph = {
        name: {one for one in imported(path, known) if one in known and one != name} for name, path in known.items()
    }
    assert len(graph) > 400
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"these import each other: {' -> '.join(error.args[1])}") from None
