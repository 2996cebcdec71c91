"""Finds every vector under ``GOLDEN_DIR`` by listing it, and says who judges it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.parity import adapters
from tests.parity.vectors import LINE_ADAPTERS, PATH_ADAPTERS, LineAdapter, PathAdapter

Kind = Literal["line", "path", "pending"]
NO_ADAPTER = "no adapter"


@dataclass(frozen=True, slots=True)
class Rules:
    """``deviations.yaml``: reasons of deviations by rule, families not ready yet, files that hold no vectors."""

    deviations: Mapping[str, str]
    pending_families: Mapping[str, str]
    without_line: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unit:
    """One file or case folder, relative to ``GOLDEN_DIR``; ``detail`` is the missing part of a pending one."""

    path: str
    kind: Kind
    adapter: LineAdapter | PathAdapter | None = None
    detail: str = ""
    count: int = field(default=1)


def load_rules(file: Path | None = None) -> Rules:
    content: dict[str, Any] = yaml.safe_load((file or Path(__file__).with_name("deviations.yaml")).read_text("utf-8"))
    unknown = set(content) - {"deviations", "pending_families", "without_line"}
    if unknown:
        raise ValueError(f"deviations.yaml: unknown keys {sorted(unknown)}")
    return Rules(*(content.get(key) or {} for key in ("deviations", "pending_families", "without_line")))


def import_adapters() -> None:
    """Import every module of the package, so that all adapters are registered."""
    for module in pkgutil.walk_packages(adapters.__path__, f"{adapters.__name__}."):
        importlib.import_module(module.name)


def match(table: Mapping[str, Any], path: str) -> Any | None:
    """The value of the longest (most exact) pattern that fits the path."""
    fitting = [pattern for pattern in table if fnmatchcase(path, pattern)]
    return table[max(fitting, key=len)] if fitting else None


def pending_folder(rules: Rules, path: str) -> str | None:
    """The missing part of a folder that is pending as a whole: patterns that end with ``/``."""
    patterns = {pattern: text for pattern, text in rules.pending_families.items() if pattern.endswith("/")}
    return match(patterns, f"{path}/")


def count_lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(bool(line.strip()) for line in lines)


def count_expected(folder: Path) -> int:
    """The files that a case folder expects: those named ``expected…``, or below a folder of such a name."""
    named = folder.glob("expected*")
    return sum(1 if entry.is_file() else sum(file.is_file() for file in entry.rglob("*")) for entry in named)


def _file_unit(path: str, file: Path, rules: Rules) -> Unit | None:
    is_lines = file.suffix == ".jsonl"
    adapter = match(LINE_ADAPTERS, path) if is_lines else None
    if adapter is not None:
        return Unit(path, "line", adapter)
    if not is_lines and file.suffix != ".json":
        return None  # a readme
    return _pending(path, rules, count_lines(file) if is_lines else 1)


def _pending(path: str, rules: Rules, count: int) -> Unit:
    return Unit(path, "pending", detail=match(rules.pending_families, path) or NO_ADAPTER, count=count)


def _walk(folder: Path, root: Path, rules: Rules) -> Iterator[Unit]:
    for entry in sorted(folder.iterdir()):
        path = entry.relative_to(root).as_posix()
        if match(rules.without_line, path) is not None:
            continue
        adapter = match(PATH_ADAPTERS, path)
        if adapter is not None:
            yield Unit(path, "path", adapter)
        elif entry.is_file():
            if (unit := _file_unit(path, entry, rules)) is not None:
                yield unit
        elif (missing := pending_folder(rules, path)) is not None:
            yield Unit(path, "pending", detail=missing)
        elif count := count_expected(entry):
            yield _pending(path, rules, count)
        else:
            yield from _walk(entry, root, rules)


def find_units(root: Path, rules: Rules) -> list[Unit]:
    """All vectors below ``root``, sorted by path.

    The folder of a path adapter is not descended into, nor is a case folder, which is one that holds expected files:
    what lies beside them is its input. An adapter beats an entry of ``pending_families``. A case folder, ``.jsonl``
    or ``.json`` file that nobody knows is pending for want of an adapter.
    """
    return sorted(_walk(root, root, rules), key=lambda unit: unit.path)
