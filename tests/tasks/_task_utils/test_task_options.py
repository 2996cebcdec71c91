from __future__ import annotations

from typing import ClassVar

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks._task_utils.task_options import BenchmarkOptions, wrong_option


class Options(BenchmarkOptions, frozen=True, kw_only=True):
    benchmark: ClassVar[str] = "Toy"

    size: int = 3
    name: str = ""


def test_settings_of_models_are_passed_over() -> None:
    assert Options.of({"size": 5, "qwen": {"size": 7}}) == Options(size=5)
    assert Options.of(None) == Options()


def test_an_unknown_name_and_a_wrong_value_are_named() -> None:
    with pytest.raises(TaskError, match="Toy has no task option 'sise'; there is: size, name"):
        Options.of({"sise": 5})
    assert str(wrong_option("Toy", "size", "a number", "x")) == "Toy: task option size must be a number, not 'x'"


class Sheets(BenchmarkOptions, frozen=True, kw_only=True):
    benchmark: ClassVar[str] = "Toy"

    sheets: int = 0

    def check(self) -> None:
        if isinstance(self.sheets, bool):
            raise wrong_option("Toy", "sheets", "a number", self.sheets)


def test_options_are_read_once_for_the_same_values() -> None:
    assert Sheets.of({"sheets": 1, "qwen": {"sheets": 2}}) is Sheets.of({"sheets": 1})
    assert Sheets.of({"sheets": 1}) is not Sheets.of({"sheets": 2})


def test_values_that_are_equal_but_of_another_kind_are_checked_by_themselves() -> None:
    assert Sheets.of({"sheets": 1}).sheets == 1
    with pytest.raises(TaskError, match="task option sheets must be a number, not True"):
        Sheets.of({"sheets": True})
    with pytest.raises(TaskError, match=r"task option sheets must be one value, not \[1\]"):
        Sheets.of({"sheets": [1]})
