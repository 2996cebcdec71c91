from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from lmms_eval.compat.plugins.delegating import read_given, takes
from tests.cases import for_each


@dataclass(frozen=True, slots=True)
class Settings:
    model: str
    size: int = 3
    speed: float = 0.5


def test_positions_and_keywords_are_fields_and_the_rest_is_told_apart() -> None:
    settings, given, others = read_given(Settings, ("m",), {"speed": 0.5, "colour": "red"})
    assert settings == Settings("m", 3, 0.5)
    assert given == {"model": "m", "speed": 0.5} and others == {"colour": "red"}


@for_each(("positional", "keywords"), [((), {}), (("m", 1, 2, 3), {}), (("m",), {"model": "n"})])
def test_calls_that_no_function_of_these_parameters_takes(positional: tuple[Any, ...], keywords: Any) -> None:
    with pytest.raises(TypeError):
        read_given(Settings, positional, keywords)


def test_signature_of_the_class_and_of_subclasses() -> None:
    class Open:
        @takes(Settings, any_other=True)
        def __init__(self, *positional: Any, **keywords: Any) -> None: ...

    class Closed(Open):
        @takes(Settings)
        def __init__(self, *positional: Any, **keywords: Any) -> None: ...

    class Own(Open):
        def __init__(self, mark: str) -> None: ...

    assert list(inspect.signature(Open).parameters) == ["model", "size", "speed", "others"]
    assert str(inspect.signature(Closed)) == "(model: 'str', size: 'int' = 3, speed: 'float' = 0.5)"
    assert list(inspect.signature(Own).parameters) == ["mark"]
