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

Kind = Literal["line", "path", "pending", "unknown"]


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


def _is_expected(path: str) -> bool:
    return any(part.startswith("expected") for part in path.split("/"))


def _file_unit(path: str, file: Path, rules: Rules) -> Unit | None:
    is_lines = file.suffix == ".jsonl"
    adapter = match(LINE_ADAPTERS, path) if is_lines else None
    if adapter is not None:
        return Unit(path, "line", adapter)
    if not is_lines and not _is_expected(path):
        return None  # an input or a readme
    missing = match(rules.pending_families, path)
    if missing is None:
        return Unit(path, "unknown")
    return Unit(path, "pending", detail=missing, count=count_lines(file) if is_lines else 1)


def _walk(folder: Path, root: Path, rules: Rules) -> Iterator[Unit]:
    for entry in sorted(folder.iterdir()):
        path = entry.relative_to(root).as_posix()
        if match(rules.without_line, path) is not None:
            continue
        adapter = match(PATH_ADAPTERS, path)
        if adapter is not None:
            yield Unit(path, "path", adapter)
        elif entry.is_dir() and (missing := pending_folder(rules, path)) is not None:
            yield Unit(path, "pending", detail=missing)
        elif entry.is_dir():
            yield from _walk(entry, root, rules)
        elif (unit := _file_unit(path, entry, rules)) is not None:
            yield unit


def _case_folder(path: str) -> str:
    """The folder that a pending expected file belongs to: what lies above the first ``expected…`` part."""
    parts = path.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if part.startswith("expected"))]) or path


def find_units(root: Path, rules: Rules) -> list[Unit]:
    """All vectors below ``root``, sorted by path; the pending expected files of a case folder form one unit.

    A path adapter's folder is not descended into. An adapter beats an entry of ``pending_families``. A ``.jsonl``
    file or an ``expected…`` file that nobody knows is a unit of kind ``unknown``.
    """
    units: dict[str, Unit] = {}
    for unit in _walk(root, root, rules):
        path, count = unit.path, unit.count
        if unit.kind == "pending" and _is_expected(path) and not path.endswith(".jsonl"):
            path = _case_folder(path)
            count += units[path].count if path in units else 0
        units[path] = Unit(path, unit.kind, unit.adapter, unit.detail, count)
    return [units[path] for path in sorted(units)]
