"""The tables of ``docs/packs.md``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from release.packs import main


def record(name: str, status: str, kind: str = "", cause: str = "", what: str = "task") -> dict[str, Any]:
    stated = {"broken": "failed"}.get(status, status)
    findings = [{"step": "functions", "status": "ok"}, {"step": "data", "status": stated, "kind": kind, "cause": cause}]
    return {"name": name, "what": what, "status": status, "findings": findings}


def shown(*records: dict[str, Any]) -> int:
    counts = {"broken": 1, "skipped": 2}
    return main(json.dumps({"checked": records, "counts": counts, "seconds": 1.6}))


def test_classes_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    absent = [record(f"p{n}", "broken", "package missing", f"{'b, c' if n else 'a'}: pip install") for n in range(3)]
    functions = [
        record(f"f{n}", "broken", "task file wrong", f"TaskError: u.py has no function 'f{n}'") for n in range(4)
    ]
    keys = [record("k", "broken", "environment variable missing", "A_KEY: set it")]
    other = [record("g", "well", what="group"), *(record(n, "skipped", "data not downloaded", "x") for n in "st")]
    assert shown(*absent, *functions, *keys, *other) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "11 checked: 1 broken, 2 skipped; 2 s"
    assert lines[4:] == [
        "| 1 | OK | groups |  |",
        "| 2 | skipped | data not downloaded | x |",
        "| 4 | broken | task file wrong | broken in the pack: files name functions that their module lacks "
        "(`f0`, `f1`, `f2`, …) |",
        "| 3 | broken | package missing | `b, c` 2, `a` 1 |",
        "| 1 | broken | environment variable missing: A_KEY | its code needs the variable when it is imported: set it "
        "(`k`) |",
    ]


def test_a_class_without_a_reason_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(record("odd", "broken", "code raises", "KeyError: 'x'")) == 1
    assert "| 1 | broken | code raises | UNKNOWN: odd: KeyError: 'x' (`odd`) |" in capsys.readouterr().out
