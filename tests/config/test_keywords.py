"""Type checkers know the arguments of ``simple_evaluate``; ``calls.py`` is what ``make lint`` asks mypy."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Sequence

from lmms_eval import evaluator
from lmms_eval.config import load_configs
from lmms_eval.config.keywords import EvaluateArguments
from lmms_eval.config.options import RunConfig, options
from release import keywords
from tests.cases import for_each


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


@for_each("name", ["tasks", "plugins", "allow_media", "ablate", "include_path"])
def test_lists_are_taken(name: str) -> None:
    (config,) = load_configs({name: ["no-media", "choices-only"]}, {}).configs
    assert getattr(config, name) in ("no-media,choices-only", ("no-media", "choices-only"))
