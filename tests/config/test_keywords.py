"""Type checkers know the arguments of ``simple_evaluate``; ``calls.py`` is what ``make lint`` asks mypy."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from types import UnionType
from typing import Any

from lmms_eval import evaluator
from lmms_eval.config.keywords import EvaluateArguments, OptionArguments
from lmms_eval.config.options import RunConfig


def members(hint: Any) -> set[Any]:
    return (
        set(typing.get_args(hint)) if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union else {hint}
    )


def test_the_arguments_are_the_options() -> None:
    declared, stated = typing.get_type_hints(OptionArguments), typing.get_type_hints(RunConfig)
    options = [field.name for field in dataclasses.fields(RunConfig) if field.name != "model"]
    assert list(declared) == options
    written = {dict[str, Any], tuple[str, ...], tuple[int | None, ...]}  # mappings and lists: wider ones are declared
    for name in options:
        assert members(stated[name]) - written <= members(declared[name]), name
        assert type(None) in members(declared[name]), name


def test_the_function_takes_them() -> None:
    parameter = inspect.signature(evaluator.simple_evaluate, eval_str=True).parameters["arguments"]
    assert typing.get_args(parameter.annotation) == (EvaluateArguments,)
    assert set(typing.get_type_hints(EvaluateArguments)) >= evaluator._IGNORED
    assert set(evaluator._SEEDS) <= set(typing.get_type_hints(EvaluateArguments))
