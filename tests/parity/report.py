"""Counts of a parity test, and the lines that the summary prints for them (engine rules §12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.parity.vectors import Verdict

PROPERTY = "parity"


def tally(path: str, verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Counts in a form that travels from an xdist worker to the controller."""
    states: Counter[str] = Counter()
    deviating: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for verdict in verdicts:
        states[verdict.state] += 1
        if verdict.state == "deviates":
            deviating[verdict.detail] += 1
        elif verdict.state == "pending":
            missing[verdict.detail] += 1
    return {
        "path": path,
        "passed": states["passed"],
        "total": states["passed"] + states["failed"],
        "deviates": dict(deviating),
        "pending": dict(missing),
    }


def summary_lines(tallies: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """``PARITY``, ``DEVIATES`` and ``PENDING`` lines, sorted by path. A file with nothing judged has no PARITY line."""
    for one in sorted(tallies, key=lambda entry: entry["path"]):
        if one["total"] or one["deviates"]:
            yield f"PARITY {one['path']} {one['passed']}/{one['total']}"
        for rule, count in sorted(one["deviates"].items()):
            yield f"DEVIATES {one['path']} {count} {rule}"
        for what, count in sorted(one["pending"].items()):
            yield f"PENDING {one['path']} {count} {what}"
