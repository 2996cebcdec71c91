from __future__ import annotations

from dataclasses import dataclass

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks._task_utils.task_options import read_options, wrong_option


@dataclass(frozen=True, slots=True)
class Options:
    size: int = 3
    name: str = ""


def test_settings_of_models_are_passed_over() -> None:
    assert read_options(Options, {"size": 5, "qwen": {"size": 7}}, "Toy") == Options(5)
    assert read_options(Options, None, "Toy") == Options()


def test_an_unknown_name_and_a_wrong_value_are_named() -> None:
    with pytest.raises(TaskError, match="Toy has no task option 'sise'; there is: size, name"):
        read_options(Options, {"sise": 5}, "Toy")
    assert str(wrong_option("Toy", "size", "a number", "x")) == "Toy: task option size must be a number, not 'x'"
