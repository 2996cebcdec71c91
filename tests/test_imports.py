"""Optional packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.imports import optional_import


def test_what_is_there_is_imported() -> None:
    assert optional_import("json") == (json, True)
    assert optional_import("json", "loads") == (json.loads, True)


@pytest.mark.parametrize(
    ("module", "attribute"), [("absent_package_xyz", None), ("absent_package_xyz.part", "f"), ("json.absent", None)]
)
def test_what_is_absent_is_said_to_be(module: str, attribute: str | None) -> None:
    assert optional_import(module, attribute) == (None, False)


def test_an_absent_attribute() -> None:
    assert optional_import("json", "absent") == (None, False)


def test_a_package_that_fails_is_not_taken_for_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_package_xyz.py").write_text("import another_absent_xyz\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="another_absent_xyz"):
        optional_import("failing_package_xyz")
