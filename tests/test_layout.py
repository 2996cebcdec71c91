"""The house: modules import downwards without circles, and stay as small as one reads in one go."""

from __future__ import annotations

import ast
import gc
import graphlib
import re
from functools import cache
from pathlib import Path

import lmms_eval
from lmms_eval.aliases import find_alias
from lmms_eval.cli.commands import COMMANDS

ROOT = Path(lmms_eval.__file__).parent
LONGEST_FILE = 700
SHORTEST_MODULE = 120
"""Lines of a module that a single sibling imports."""
PROGRAMS = {f"lmms_eval.cli.{command.module}" for command in COMMANDS.values()} | {"lmms_eval.judges.serving.program"}
"""Modules that are found by their names: commands, and a child process."""
COMPAT_USERS = {
    "lmms_eval.loggers.evaluation_tracker": "writes results files, which compat must not know",
    "lmms_eval.loggers.wandb_logger": "as before",
}
"""Modules outside of ``compat`` that import from it, with the reason."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def files() -> list[Path]:
    """Every Python file of the package, without those of the front end's tools."""
    return [path for path in sorted(ROOT.rglob("*.py")) if "node_modules" not in path.parts]


def is_package(name: str) -> bool:
    """Return whether a name is that of a package; a folder that lost its modules is not one."""
    return (ROOT.parent / name.replace(".", "/") / "__init__.py").is_file()


def source(name: str) -> str:
    """The text of a module."""
    path = ROOT.parent / name.replace(".", "/")
    return (path / "__init__.py" if is_package(name) else path.with_suffix(".py")).read_text()


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed, by its dotted name."""
    found: dict[str, ast.Module] = {}
    gc.disable()  # it would look at the nodes again and again: two thirds of the time
    for path in files():
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    gc.enable()
    return found


@cache
def imports(tree: ast.Module) -> tuple[str, ...]:
    """Modules of the package that are imported anywhere, also inside functions and for type checkers alone."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name if name in modules() else node.module for name in full]
    return tuple(found)


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {name: {each for each in imports(tree) if each in modules()} - {name} for name, tree in modules().items()}
    assert len(graph) > 400
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which shows the circle


def test_files_are_short() -> None:
    assert [str(path) for path in files() if path.read_text().count("\n") > LONGEST_FILE] == []


def test_a_module_that_one_sibling_imports_is_worth_a_file() -> None:
    importers: dict[str, set[str]] = {}
    for name, tree in modules().items():
        for each in set(imports(tree)) & modules().keys():
            importers.setdefault(each, set()).add(name)
    small = [
        f"{name}: merge it into {importer}"
        for name, (importer, *others) in importers.items()
        if not others and name.rpartition(".")[0] == importer.rpartition(".")[0]
        if len(source(name).splitlines()) < SHORTEST_MODULE and name not in PROGRAMS and not is_package(name)
    ]
    assert small == []


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    questions = [
        f"{name}: {text.splitlines()[0]}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node))
        if re.match(r"(What|How|Where|Why|Which|Who)\b", text)
    ]
    assert questions == []


def _is_compat(module: str) -> bool:
    return f"{module}.".startswith("lmms_eval.compat.")


def test_only_modules_at_the_familys_paths_import_them() -> None:
    users = {name for name, tree in modules().items() if not _is_compat(name) and any(map(_is_compat, imports(tree)))}
    assert users == set(COMPAT_USERS)


def test_living_code_does_not_use_the_familys_paths() -> None:
    found = {name: [used for used in imports(tree) if find_alias(used)] for name, tree in modules().items()}
    assert {name: used for name, used in found.items() if used} == {}
