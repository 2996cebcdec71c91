"""No regular expression of the package takes more than linear time, whatever a model, a judge or a data set wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType

import pytest

from lmms_eval.compat import reasoning
from lmms_eval.compat.answers import (
    EvalAIAnswerProcessor,
    parse_jmmmu_pro_multi_choice_response,
    parse_point2d,
    parse_reasoning_model_answer,
)
from lmms_eval.compat.verifiers import NumberExtractor
from lmms_eval.filters.patterns import MultiChoiceRegexFilter
from lmms_eval.filters.reasoning import strip_reasoning_tags
from lmms_eval.judges import prompts as replies
from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.tasks.megabench.scoring.parsers import PARSERS, AnswerShape
from lmms_eval.utils.picture_marks import split_marks
from tests.cases import for_each
from tests.regular_expressions import Expression, Found, apply, attacks, ended_after, ends_within, find
from tests.tasks.megabench.fuzzing import IS_THOROUGH, MEGABYTE

SIZE, LIMIT_S = (1_000_000, 5.0) if IS_THOROUGH else (20_000, 0.15)
"""Quadratic time takes some 0.2 s for 20,000 characters on an idle machine, linear time less than 5 ms."""

NO_MODEL_TEXT = MappingProxyType(
    {
        "tasks/general_bench/facts/__init__.py": "names of metrics in the benchmark's workbook",
        "tasks/general_bench/measures/video_networks.py": "prompts of annotations, at most 2,000 characters",
        "tasks/general_bench/prompts/media.py": "names of tasks in the benchmark's workbook",
    }
)
"""Files with expressions that may take quadratic time, and what they read."""
DYNAMIC = MappingProxyType(
    {
        "api/interleaved.py:edited": "a private character around digits",
        "metrics/speech.py:remove_sp": "a set of marks that a task names",
        "compat/task_files.py:_letter": "literal options of a question",
        "metrics/mmmu.py:find": "literal letters",
        "filters/patterns.py:_compiled": "patterns of the user's YAML",
        "filters/patterns.py:_options": "literal options: below",
        "compat/verifiers.py:__init__": "patterns of a task's own",
        "metrics/text.py:exact_match": "patterns of the user's YAML",
        "tasks/lm_eval/metrics.py:cleaned": "patterns of the task's YAML",
        "tasks/general_bench/prompts/forms.py:text_demand": "literal candidates in a prompt",
        "tasks/ifeval/instructions.py:": "keywords of the data set; scored in a process that may be killed",
        "utils/template.py:regex_replace": "patterns of the user's templates",
    }
)
"""Expressions whose text is made while the program runs."""


def slowest_case(expression: Expression) -> str | None:
    """The first case that is not ended in time."""
    for method in sorted(expression.methods):
        run = apply(expression, method)
        for text in attacks(expression, SIZE):
            if not ends_within(LIMIT_S, run, text):
                return f"{method} of {text[:60]!r}..."
    return None


@pytest.fixture(scope="session")
def found() -> Found:
    return find()


def reading(found: Found) -> list[Expression]:
    return [item for item in found.expressions if item.where.rpartition(":")[0] not in NO_MODEL_TEXT]


def test_time_is_linear(found: Found) -> None:
    slow = [f"{item.where}: {item.pattern!r}: {case}" for item in reading(found) if (case := slowest_case(item))]
    assert not slow, "\n".join(slow)


def test_a_quadratic_one_is_found() -> None:
    for pattern in (r"<think>.*?</think>", r"\s*\n", r"(a+)+b"):
        assert slowest_case(Expression("here", pattern, re.DOTALL, frozenset({"sub"}))) is not None, pattern


def test_what_is_made_at_run_time_is_known(found: Found) -> None:
    assert found.dynamic == set(DYNAMIC)
    files = {expression.where.rpartition(":")[0] for expression in found.expressions}
    assert set(NO_MODEL_TEXT) <= files and len(reading(found)) > 100


SHAPE = AnswerShape("a", single_line=True)
CHOOSE = MultiChoiceRegexFilter()
READERS: dict[str, Callable[[str], object]] = {
    "strip_reasoning_tags": strip_reasoning_tags,
    "parse_reasoning_model_answer": parse_reasoning_model_answer,
    "parse_json": replies.parse_json,
    "multi_choice_regex": lambda text: CHOOSE.apply([[text]], [{"choices": ["one two", "a a", "1"]}]),
    "boxed_number": NumberExtractor(),
    "extract_anwser_tag": reasoning.extract_anwser_tag,
    "format_reward": reasoning.format_reward,
    "parse_mcq": reasoning.parse_mcq,
    "split_marks": split_marks,
    "extract_mcq_answer": extract_mcq_answer,
    "parse_jmmmu_pro": lambda text: parse_jmmmu_pro_multi_choice_response(text, ["A"]),
    "parse_point2d": lambda text: parse_point2d(f"({text}", 1, 1),
    "vqa_answers": EvalAIAnswerProcessor(),
    "answer_string": lambda text: PARSERS["answer_string"](text, SHAPE),
    "verbatim_answer_string": lambda text: PARSERS["verbatim_answer_string"](text, SHAPE),
    "json": lambda text: PARSERS["json"](text, SHAPE),
}
MEGABYTES = {
    "blanks": " " * MEGABYTE,
    "newlines": "\n" * MEGABYTE,
    "a starred marker and blanks": "*Answer:" + " " * MEGABYTE,
    "starred markers": "*Answer: " * (MEGABYTE // 9),
    "thoughts that begin": "<think>" * (MEGABYTE // 7),
    "thoughts": "<think>x</think>" * (MEGABYTE // 16),
    "thoughts that end": "</think>" * (MEGABYTE // 8),
    "thoughts in thoughts": "<think>" * (MEGABYTE // 15) + "</think>" * (MEGABYTE // 15),
    "thoughts that make thoughts": "<thi" * 60_000 + "<think></think>" + "nk></think>" * 60_000,
    "answers that begin": "<answer>" * (MEGABYTE // 8),
    "braces": "{" * MEGABYTE,
    "closing braces": "}" * MEGABYTE,
    "nested brackets": "([{" * (MEGABYTE // 6) + "}])" * (MEGABYTE // 6),
    "nested objects": '{"a":' * (MEGABYTE // 5),
    "colons and blanks": (":" + " " * 99) * (MEGABYTE // 100),
    "boxes": "\\boxed{" * (MEGABYTE // 7),
    "digits": "1" * MEGABYTE,
    "pictures": "<image>" * (MEGABYTE // 7),
}


@pytest.mark.parametrize("reader", READERS)
def test_readers_take_a_megabyte(reader: str) -> None:
    for name, text in MEGABYTES.items():
        assert ends_within(3.0, READERS[reader], text), f"{reader} of {name}: more than 3 s"


@for_each("name", ["blanks", "nested brackets"])
def test_options_are_found_in_a_megabyte(name: str) -> None:
    with ended_after(3.0):
        assert extract_mcq_answer(MEGABYTES[name] + "(B)") == "B"
