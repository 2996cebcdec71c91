"""What a parity adapter takes and returns, and the table of adapters.

An adapter is registered for patterns of paths relative to ``GOLDEN_DIR`` (``fnmatch`` rules). A *line* adapter
judges one line of a ``.jsonl`` file; a *path* adapter judges a whole file or case folder and returns a verdict
for each expected file or value in it. A path that no adapter knows is named as pending, so nothing is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

GOLDEN_DIR = Path(os.environ.get("GOLDEN_DIR") or Path(__file__).parents[2].parent / "shared" / "golden").resolve()
DATA_DIR = GOLDEN_DIR.parent / "data"


@dataclass(frozen=True, slots=True)
class Vector:
    """One line of a vector file."""

    path: str
    """Path of the file relative to ``GOLDEN_DIR``."""
    index: int
    """Line number, from 0."""
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one vector came out; ``detail`` is the rule (deviates), the missing part (pending) or the difference."""

    state: Literal["passed", "failed", "deviates", "pending"]
    detail: str = ""


PASSED = Verdict("passed")


def failed(detail: str) -> Verdict:
    return Verdict("failed", detail)


def deviates(rule: str) -> Verdict:
    """``rule`` is a key of ``deviations.yaml``, where its reason stands."""
    return Verdict("deviates", rule)


def pending(what: str) -> Verdict:
    return Verdict("pending", what)


LineAdapter = Callable[[Vector], Verdict]
PathAdapter = Callable[[Path], Sequence[Verdict]]
LINE_ADAPTERS: dict[str, LineAdapter] = {}
PATH_ADAPTERS: dict[str, PathAdapter] = {}


def line_adapter(*patterns: str) -> Callable[[LineAdapter], LineAdapter]:
    """Register an adapter for the lines of matching ``.jsonl`` files."""

    def register(function: LineAdapter) -> LineAdapter:
        LINE_ADAPTERS.update(dict.fromkeys(patterns, function))
        return function

    return register


def path_adapter(*patterns: str) -> Callable[[PathAdapter], PathAdapter]:
    """Register an adapter for matching files or case folders as a whole."""

    def register(function: PathAdapter) -> PathAdapter:
        PATH_ADAPTERS.update(dict.fromkeys(patterns, function))
        return function

    return register
