"""Vectors made in a temporary folder, judged as the recorded ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.parity.discovery import find_units, import_adapters, load_rules
from tests.parity.test_vectors import judge
from tests.parity.vectors import Verdict


def write_lines(root: Path, path: str, *records: Any) -> None:
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    write_text(root / path, text)


def write_json(root: Path, path: str, content: Any) -> None:
    write_text(root / path, json.dumps(content, indent=4))


def write_text(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def verdicts(root: Path) -> list[Verdict]:
    """Of all vectors below a folder, by path."""
    import_adapters()
    return [verdict for unit in find_units(root, load_rules()) for verdict in judge(unit, root)]


def states(root: Path) -> list[str]:
    """``passed``, ``failed``, or the rule of a deviation."""
    return [verdict.detail if verdict.state == "deviates" else verdict.state for verdict in verdicts(root)]


def line_state(root: Path, path: str, record: Any) -> str:
    """Of a file with this one line."""
    write_lines(root, path, record)
    (state,) = states(root)
    return state
