"""Type checkers know the arguments of ``simple_evaluate``."""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Sequence
from pathlib import Path

import pytest
from mypy import api

from lmms_eval import evaluator
from lmms_eval.config import load_configs
from lmms_eval.config.keywords import EvaluateArguments
from lmms_eval.config.options import RunConfig, options
from release import keywords

CALLS = """
from typing import Unpack
from lmms_eval.config.keywords import EvaluateArguments

def evaluate(**arguments: Unpack[EvaluateArguments]) -> None: ...

evaluate(tasks=["a", "b"], limit=3, model_args={"x": 1}, random_seed=5, log_samples=True, seed=[0, None, 1, 2])
evaluate(limt=3)
evaluate(limit="three")
"""


def test_the_file_is_written_from_the_options() -> None:
    assert keywords.FILE.read_text() == keywords.text(), "run make keywords"


def test_the_arguments_are_the_options() -> None:
    declared, stated = typing.get_type_hints(EvaluateArguments), typing.get_type_hints(RunConfig)
    names = [option.name for option in options() if option.name != "model"]
    assert list(declared) == [*names, *evaluator.SEEDS, *evaluator.IGNORED]
    assert declared["seed"] == int | str | Sequence[int | None] | None
    assert declared["limit"] == stated["limit"] == float | None
    assert declared["until"] == str | Sequence[str] | None


def test_the_function_takes_them() -> None:
    parameter = inspect.signature(evaluator.simple_evaluate, eval_str=True).parameters["arguments"]
    assert typing.get_args(parameter.annotation) == (EvaluateArguments,)


@pytest.mark.parametrize("name", ["tasks", "plugins", "allow_media", "ablate", "include_path"])
def test_lists_are_taken(name: str) -> None:
    (config,) = load_configs({name: ["no-media", "choices-only"]}, {}).configs
    assert getattr(config, name) in ("no-media,choices-only", ("no-media", "choices-only"))


def test_a_type_checker_sees_wrong_names_and_types(tmp_path: Path) -> None:
    file = tmp_path / "calls.py"
    file.write_text(CALLS)
    found, _, code = api.run(["--strict", f"--cache-dir={os.devnull}", "--follow-imports=silent", str(file)])
    lines = found.splitlines()
    assert (code, len(lines)) == (1, 3), found
    assert 'Unexpected keyword argument "limt" for "evaluate"; did you mean "limit"?' in lines[0]
    assert 'Argument "limit" to "evaluate" has incompatible type "str"' in lines[1]
