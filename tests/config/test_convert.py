from __future__ import annotations

import math
from typing import Any, Literal

import pytest

from lmms_eval.config.convert import typed
from lmms_eval.config.options import Arguments
from tests.cases import for_each


@for_each(
    ("kind", "value", "expected"),
    [
        (int, "3", 3),
        (int | None, " 4.0 ", 4),
        (int | None, None, None),
        (int, 5.0, 5),
        (float | None, "1e-3", 0.001),
        (float, 2, 2.0),
        (bool, "off", False),
        (bool, "Yes", True),
        (bool, 1, True),
        (str | None, 7, "7"),
        (str, 1.5, "1.5"),
        (int | str, "auto", "auto"),
        (int | str, 8, 8),
        (bool | int, True, True),
        (bool | str, "folder", "folder"),
        (Arguments, {"a": 1}, {"a": 1}),
        (Arguments | None, "a=1", "a=1"),
        (str | tuple[str, ...] | None, ["a", "b"], ("a", "b")),
        (tuple[int | None, ...], (1, None), (1, None)),
        (Literal["a", "b"] | None, "a", "a"),
    ],
)
def test_values_get_the_type_of_their_option(kind: str, value: Any, expected: Any) -> None:
    made = typed(kind, value)
    assert made == expected
    assert type(made) is type(expected)


@for_each(
    ("kind", "value", "problem"),
    [
        (int, "x", "a valid integer"),
        (int, "3.5", "a valid integer"),
        (int | None, 1.5, "a valid integer"),
        (int, math.inf, "a valid integer"),
        (int, [1], "a valid integer"),
        (float, "much", "a valid number"),
        (float | None, {}, "a valid number"),
        (bool, "maybe", "a valid boolean"),
        (bool, 2, "a valid boolean"),
        (str, True, "a text"),
        (str | None, ["a"], "a text"),
        (int, None, "a valid integer"),
        (Arguments, 1j, "a text"),
        (str | tuple[str, ...] | None, {"a": 1}, "a text"),
    ],
)
def test_other_values_are_refused(kind: str, value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        typed(kind, value)
