"""Replays every recorded vector; one test per file or case folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.parity.discovery import Unit, find_units, import_adapters, load_rules
from tests.parity.report import PROPERTY, tally
from tests.parity.vectors import GOLDEN_DIR, PASSED, LineAdapter, Vector, Verdict, deviates, failed, pending

_SHOWN = 10
RULES = load_rules()
import_adapters()
UNITS = find_units(GOLDEN_DIR, RULES) if GOLDEN_DIR.is_dir() else []


def corrected(record: dict[str, Any]) -> dict[str, Any]:
    """What the adapter compares: a record that names its deviation, with the right value in the recorded one's place.

    ``wanted`` without ``deviation`` is left to the adapter.
    """
    if "deviation" not in record:
        return record
    if "error" in record and "expected" not in record:
        return {key: value for key, value in record.items() if key != "error"} | record["wanted"]
    right = {f"expected{key}": record[f"wanted{key}"] for key in ("", "_summary") if f"wanted{key}" in record}
    if not right:
        raise KeyError(f"the line deviates by {record['deviation']}, but has no wanted value")
    return record | right


def judge_line(vector: Vector, adapter: LineAdapter) -> Verdict:
    """A line that agrees with its corrected record counts as its deviation; one that nothing could judge is pending."""
    rule = vector.record.get("deviation")
    verdict = adapter(replace(vector, record=corrected(vector.record)))
    if rule is None or verdict.state in ("failed", "pending"):
        return verdict
    if verdict != PASSED:
        return failed(f"deviates by {verdict.detail}, the line says by {rule}")
    return deviates(rule)


def judge_lines(unit: Unit, root: Path) -> list[Verdict]:
    """One verdict per line; an adapter that raises fails its line."""
    verdicts: list[Verdict] = []
    lines = (root / unit.path).read_text("utf-8").splitlines()
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        record = json.loads(line)
        try:
            verdict = judge_line(Vector(unit.path, index, record), unit.adapter)
        except Exception as error:  # noqa: BLE001 - whatever the code under test raises is a failed vector
            verdict = failed(f"{type(error).__name__}: {error}")
        if verdict.state == "failed":
            verdict = failed(f"line {index + 1}: {line[:200]}: {verdict.detail}")
        verdicts.append(verdict)
    return verdicts


def judge_path(unit: Unit, root: Path) -> list[Verdict]:
    """The verdicts of a path adapter; one that raises fails its path."""
    try:
        return list(unit.adapter(root / unit.path))
    except Exception as error:  # noqa: BLE001 - whatever the code under test raises is a failed vector
        return [failed(f"{unit.path}: {type(error).__name__}: {error}")]


def judge(unit: Unit, root: Path) -> list[Verdict]:
    if unit.kind == "line":
        return judge_lines(unit, root)
    if unit.kind == "path":
        return judge_path(unit, root)
    return [pending(unit.detail)] * unit.count


def check(unit: Unit, root: Path, rules: Any, record: Callable[[str, Any], None]) -> None:
    """Judge a unit, hand its counts to the summary, and fail on what does not agree."""
    verdicts = judge(unit, root)
    record(PROPERTY, tally(unit.path, verdicts))
    assert verdicts, f"{unit.path} holds no vectors"
    unlisted = {v.detail for v in verdicts if v.state == "deviates"} - set(rules.deviations)
    assert not unlisted, f"{unit.path}: deviations without a reason in deviations.yaml: {sorted(unlisted)}"
    differences = [v.detail for v in verdicts if v.state == "failed"]
    shown = "\n".join(differences[:_SHOWN])
    assert not differences, f"{unit.path}: {len(differences)} of {len(verdicts)} differ\n{shown}"


def report_absence(root: Path, is_chosen: bool) -> None:
    """A folder without vectors fails the run; only the default one may be absent."""
    message = f"no recorded vectors at {root}: GOLDEN_DIR names their folder"
    if is_chosen or root.is_dir():
        pytest.fail(message)
    pytest.skip(message)


if UNITS:

    @pytest.mark.parametrize("unit", UNITS, ids=[unit.path for unit in UNITS])
    def test_vectors(unit: Unit, record_property: Callable[[str, Any], None]) -> None:
        check(unit, GOLDEN_DIR, RULES, record_property)

else:

    def test_vectors() -> None:
        report_absence(GOLDEN_DIR, is_chosen=bool(os.environ.get("GOLDEN_DIR")))
