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


def test_the_package_root_offers_its_version_and_the_api() -> None:
    import lmms_eval
    from lmms_eval.evaluator import simple_evaluate

    assert lmms_eval.simple_evaluate is simple_evaluate
    assert lmms_eval.__version__.split(".")[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        lmms_eval.absent  # noqa: B018 - the look-up is what is tested
