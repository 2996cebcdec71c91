"""Tables as one test: every case runs, each with what it may change, and a failure names it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from tests.cases import for_each

TRIED: list[tuple[int, str, str]] = []


@for_each("number", [1, pytest.param(2, id="two")])
@for_each(("text", "folder"), [("a", "x"), ("b", "y")], ids=["first", "second"])
def table(number: int, text: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(tmp_path.iterdir()) == []
    (tmp_path / folder).touch()
    assert "LMMS_EVAL_CASE" not in os.environ
    monkeypatch.setenv("LMMS_EVAL_CASE", text)
    TRIED.append((number, text, folder))


def test_each_case_of_all_tables_runs_with_its_own_fixtures(tmp_path, monkeypatch) -> None:
    TRIED.clear()
    table(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert TRIED == [(1, "a", "x"), (1, "b", "y"), (2, "a", "x"), (2, "b", "y")]
    assert "LMMS_EVAL_CASE" not in os.environ


@for_each("number", [1, 2, 3, 4, 5], ids=lambda number: f"n{number}")
def failing(number: int) -> None:
    assert number != 2
    if number == 3:
        raise ValueError("three")
    if number == 4:
        pytest.fail("four")
    if number == 5:
        pytest.skip("five")


def test_a_failure_names_every_case_that_failed() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        failing()
    assert raised.value.message == "3 of 5 cases failed: n2, n3, n4"
    assert [type(error) for error in raised.value.exceptions] == [
        AssertionError,
        ValueError,
        AssertionError,
    ]
    assert [error.__notes__ for error in raised.value.exceptions] == [[f"case n{number}"] for number in (2, 3, 4)]


def test_a_table_is_skipped_if_all_of_its_cases_are() -> None:
    @for_each("number", [1, 2])
    def absent(number: int) -> None:
        pytest.skip(f"no {number}")

    with pytest.raises(pytest.skip.Exception, match=r"^no 1; no 2$"):
        absent()


def test_cases_that_are_skipped_while_others_pass_are_named_with_their_reasons() -> None:
    @for_each("number", [1, 2, 3], ids=lambda number: f"n{number}")
    def incomplete(number: int) -> None:
        if number > 1:
            pytest.skip(f"no {number}")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        incomplete()
    (warning,) = caught
    assert str(warning.message) == "2 of 3 cases skipped: n2 (no 2); n3 (no 3)"
    assert warning.filename == __file__


def test_cases_without_names_are_shown_by_their_values() -> None:
    @for_each(("text", "number"), [("x" * 100, 1)])
    def wrong(text: str, number: int) -> None:
        raise ValueError(text)

    with pytest.raises(ExceptionGroup, match=r"1 of 1 cases failed: 0: 'x{50,60}\.\.\., 1"):
        wrong()


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AssertionError, match="1 values"):
        for_each("a, b", [(1,)])
    with pytest.raises(AssertionError, match="no parameters"):
        for_each("letter", ["a"])(lambda number: None)
    with pytest.raises(AssertionError, match="no cases"):
        for_each("letter", [])
    with pytest.raises(AssertionError, match="1 ids"):
        for_each("letter", ["a", "b"], ids=["a"])
    with pytest.raises(AssertionError, match="parametrize"):
        for_each("letter", [pytest.param("a", marks=pytest.mark.slow)])
