"""Filters of the family, subclassed as its task folders do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.filter import Filter as FilterOfApi
from lmms_eval.errors import UsageError
from lmms_eval.filters import Filter, FilterEnsemble, run_filters
from lmms_eval.filters.extraction import (
    ExtendedRegexFilter,
    MultiChoiceRegexFilter,
    RegexFilter,
    SimpleMultiChoiceRegexFilter,
)
from lmms_eval.filters.transformation import MapFilter


class ChoiceFilter(ExtendedRegexFilter):
    """The form of ten folders: arguments are passed through, the pattern and then the option texts are searched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return [[self._one(answer, doc["choices"]) for answer in answers]
                for answers, doc in zip(resps, docs, strict=True)]  # fmt: skip

    def _one(self, answer: str, choices: list[str]) -> Any:
        texts = {self.filter_ignores(text.strip()): f"({chr(65 + index)})" for index, text in enumerate(choices)}
        match = self.find_match(self.regex, answer)
        if not match:
            pattern = re.compile("|".join(map(re.escape, texts)))
            match = self.find_match(pattern, self.filter_ignores(answer), texts)
        return match or self.fallback


class PositionalFilter(RegexFilter):
    """The form of mmlu: arguments by position, attributes read."""

    def __init__(self, regex_pattern: str = r"\((.)\)", group_select: int = -1, fallback: str = "-") -> None:
        super().__init__(regex_pattern, group_select, fallback)

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        found = [self.regex.findall(answers[0]) for answers in resps]
        return [matches[self.group_select] if matches else self.fallback for matches in found]


class NumberFilter(MapFilter):
    """The form of six folders: the mapping by position, read again in ``apply``."""

    def __init__(self) -> None:
        super().__init__({"one": 1, "two": 2}, default_value=None)

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return [[self.mapping_dict.get(answer.lower(), self.default_value) for answer in texts] for texts in resps]


class BareFilter(Filter):
    """The form of mix_evals: the base's constructor is never called."""

    def __init__(self, model: str) -> None:
        self.model = model

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return [self.model + answers[0] for answers in resps]


def run(step: Any, answers: list[Any], docs: list[Any] | None = None) -> list[Any]:
    return run_filters(FilterEnsemble("p", (step,)), answers, docs or [{}] * len(answers))


def test_subclasses_of_task_folders_run_in_a_pipeline() -> None:
    docs = [{"choices": ["a red cat", "It's a dog."]}] * 4
    choose = ChoiceFilter(r"\(([A-Z])\)", ignore_case=True, ignore_punctuation=True, regexes_to_ignore=["The "])
    answers = [["I say (B)"], ["The A RED cat!"], ["its a dog"], ["a bird"]]
    assert run(choose, answers, docs) == [["B"], ["(A)"], ["(B)"], ["[invalid]"]]
    assert run(PositionalFilter(), [["(A) or (C)"], ["none"]]) == ["C", "-"]
    assert run(NumberFilter(), [["ONE", "three"]]) == [[1, None]]
    assert run(BareFilter("m:"), [["x"]]) == ["m:x"]


def test_the_base_changes_nothing_and_takes_anything() -> None:
    assert Filter is FilterOfApi
    assert run(Filter(1, 2, name="x"), [["a"], []]) == [["a"], []]


def test_positions_of_arguments() -> None:
    made = MultiChoiceRegexFilter("x", 1, "f", True, False, ["y"])
    assert (made.regex_pattern, made.group_select, made.fallback) == ("x", 1, "f")
    assert (made.ignore_case, made.ignore_punctuation, made.regexes_to_ignore) == (True, False, ["y"])


def test_wrong_arguments_are_errors_of_ours_and_of_the_family() -> None:
    with pytest.raises(TypeError, match="regex_patern"):
        RegexFilter(regex_patern="x")  # type: ignore[call-arg]
    for kind in (re.error, UsageError):
        with pytest.raises(kind, match="regular expression"):
            RegexFilter("(")
    for kind in (AssertionError, UsageError):
        with pytest.raises(kind, match="give a mapping"):
            MapFilter([])  # type: ignore[arg-type]


@given(st.text())
def test_the_table_deletes_punctuation_alone(text: str) -> None:
    import unicodedata

    reduced = text.translate(ExtendedRegexFilter.punct_tbl)
    assert reduced == "".join(one for one in text if unicodedata.category(one)[0] != "P")


@given(st.text(alphabet="AB. \n!red", max_size=40), st.text(max_size=20))
def test_a_letter_is_one_of_the_options(question: str, answer: str) -> None:
    (found,) = run(SimpleMultiChoiceRegexFilter(), [[answer]], [{"question": question}])
    letters = [chr(65 + index) for index in range(question.count("."))]
    assert found in letters or found == re.sub(r"[^\w\s]", "", answer).strip()


def test_option_texts_with_punctuation_are_found() -> None:
    doc = {"question": "Which?\nA. it's 5%\nB. well-known (new)"}
    assert run(SimpleMultiChoiceRegexFilter(), [["Well, well-known (new)."]], [doc]) == ["B"]
