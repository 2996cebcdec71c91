"""Type checkers know the arguments of ``simple_evaluate``."""

from __future__ import annotations

import dataclasses
import inspect
import os
import typing
from pathlib import Path
from types import UnionType
from typing import Any

from mypy import api

from lmms_eval import evaluator
from lmms_eval.config.keywords import EvaluateArguments, OptionArguments
from lmms_eval.config.options import RunConfig

CALLS = """
from typing import Unpack
from lmms_eval.config.keywords import EvaluateArguments

def evaluate(**arguments: Unpack[EvaluateArguments]) -> None: ...

evaluate(tasks=["a", "b"], limit=3, model_args={"x": 1}, random_seed=5, log_samples=True, seed=[0, None, 1, 2])
evaluate(limt=3)
evaluate(limit="three")
"""


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


def test_a_type_checker_sees_wrong_names_and_types(tmp_path: Path) -> None:
    file = tmp_path / "calls.py"
    file.write_text(CALLS)
    found, _, code = api.run(["--strict", f"--cache-dir={os.devnull}", "--follow-imports=silent", str(file)])
    lines = found.splitlines()
    assert (code, len(lines)) == (1, 3), found
    assert 'Unexpected keyword argument "limt" for "evaluate"; did you mean "limit"?' in lines[0]
    assert 'Argument "limit" to "evaluate" has incompatible type "str"' in lines[1]
