"""Optional packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.imports import (
    MissingOptionalDependencyError,
    is_package_available,
    make_lazy_getattr,
    optional_import,
    require_package,
)
from tests.cases import for_each


def test_what_is_there_is_imported() -> None:
    assert optional_import("json") == (json, True)
    assert optional_import("json", "loads") == (json.loads, True)


@for_each(
    ("module", "attribute"), [("absent_package_xyz", None), ("absent_package_xyz.part", "f"), ("json.absent", None)]
)
def test_what_is_absent_is_said_to_be(module: str, attribute: str | None) -> None:
    assert optional_import(module, attribute) == (None, False)


def test_an_absent_attribute() -> None:
    assert optional_import("json", "absent") == (None, False)
    assert optional_import("json", "absent", fallback=5) == optional_import("absent_package_xyz", None, 5) == (5, False)


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


def test_a_package_that_is_required() -> None:
    require_package("json", "all", "reading")
    for kind in (ImportError, UsageError, MissingOptionalDependencyError):
        with pytest.raises(kind) as caught:
            require_package("absent_package_xyz", "all", "sound")
        assert str(caught.value) == (
            "'absent_package_xyz' is required for sound but not installed. Install with: pip install lmms_eval[all]"
        )
    with pytest.raises(ImportError, match=r"is required but not installed\. Install with: pip install absent_xyz$"):
        require_package("absent_xyz")


@for_each(("name", "found"), [("json", True), ("json.decoder", True), ("absent_xyz.part", False)])
def test_availability(name: str, found: bool) -> None:
    assert is_package_available(name) is found


def test_lazy_names() -> None:
    attribute = make_lazy_getattr({"read": ("json", "loads")})
    assert attribute("read") is json.loads
    with pytest.raises(AttributeError, match="no attribute 'write'; there are read"):
        attribute("write")
