from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.filter import Filter
from lmms_eval.errors import UnknownNameError, UsageError
from lmms_eval.filters import FILTERS, FilterEnsemble, get_filter, run_filters
from tests.cases import for_each

ANSWERS = st.lists(st.lists(st.text(max_size=8), max_size=4), max_size=5)


def run(name: str, answers: list[list[Any]], docs: list[Any] | None = None, **kwargs: Any) -> list[Any]:
    return run_filters(FilterEnsemble("p", (get_filter(name)(**kwargs),)), answers, docs or [{}] * len(answers))


@for_each("name", sorted(FILTERS))
def test_every_filter_is_one(name: str) -> None:
    assert issubclass(get_filter(name), Filter)


@pytest.mark.parametrize("name", sorted(set(FILTERS) - {"take_first", "take_first_k", "multi_choice_regex"}))
@given(answers=ANSWERS)
def test_filters_keep_one_value_per_document(name: str, answers: list[list[str]]) -> None:
    before = [list(texts) for texts in answers]
    assert len(run(name, answers)) == len(answers)
    assert answers == before


@given(ANSWERS)
def test_take_first_is_the_first_or_empty(answers: list[list[str]]) -> None:
    assert run("take_first", answers) == [texts[0] if texts else "" for texts in answers]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9))
def test_majority_vote_is_most_common_and_earliest(answers: list[str]) -> None:
    [[winner]] = run("majority_vote", [answers])
    count = answers.count(winner)
    assert count == max(map(answers.count, answers))
    assert all(answers.count(text) < count for text in answers[: answers.index(winner)])


def test_majority_vote_of_nothing() -> None:
    assert run("majority_vote", [[]]) == [[]]


def test_regex_selects_among_matches_and_groups() -> None:
    assert run("regex", [["1 2 3"]], regex_pattern=r"\d", group_select=-1) == [["3"]]
    assert run("regex", [["1"]], regex_pattern=r"\d", group_select=1, fallback="?") == [["?"]]
    assert run("regex", [["b"]], regex_pattern="(a)|(b)") == [["b"]]
    assert run("regex", [["x"]], regex_pattern="(a?)(b?)", fallback="?") == [["?"]]
    assert run("regex", [[None]], regex_pattern="a", fallback="?") == [["?"]]


def test_multi_choice_regex_needs_choices() -> None:
    with pytest.raises(UsageError, match="choices"):
        run("multi_choice_regex", [["a"]], [{}])
    assert run("multi_choice_regex", [["so green", "x: B"]], [{"choices": ["red", "green"]}], regex_pattern="@(.)") == [
        ["(B)", "(B)"]
    ]
    assert run("multi_choice_regex", [["x"]], [{"choices": ["", "green"]}], regex_pattern="@(.)") == [["[invalid]"]]


@for_each(
    ("name", "kwargs", "what"),
    [
        ("regex", {"regex_pattern": "("}, "regular expression"),
        ("multi_choice_regex", {"regexes_to_ignore": ["["]}, "multi_choice_regex"),
        ("take_first_k", {"k": 0}, "take_first_k"),
        ("map", {"mapping_dict": [1]}, "mapping_dict"),
        ("strip_thinking", {"tag_pairs": [["<a>"]]}, "pair"),
    ],
)
def test_bad_arguments_are_refused_at_once(name: str, kwargs: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        get_filter(name)(**kwargs)


def test_too_few_answers() -> None:
    with pytest.raises(UsageError, match="wants 2 answers of each document but one has 1"):
        run("take_first_k", [["a", "b"], ["a"]], k=2)


def test_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="take_first"):
        get_filter("take_frist")


class Lazy(Filter):
    """Returns an iterator, as filters of the family do."""

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> Iterator[Any]:
        return (doc["id"] + answers[0] for answers, doc in zip(resps, docs, strict=True))


class Dropping(Filter):
    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return list(resps)[1:]


def test_pipeline_pairs_documents_and_checks_counts() -> None:
    assert run_filters(FilterEnsemble("p", (Lazy(),)), [["a"], ["b"]], [{"id": "x"}, {"id": "y"}]) == ["xa", "yb"]
    with pytest.raises(UsageError, match="2 lists of answers for 1"):
        run_filters(FilterEnsemble("p", ()), [["a"], ["b"]], [{}])
    with pytest.raises(UsageError, match="Dropping returned 1"):
        run_filters(FilterEnsemble("p", (Dropping(),)), [["a"], ["b"]], [{}, {}])


MARKED = {
    "both": ("<think>x</think><answer><|begin_of_box|>B<|end_of_box|></answer>", "B"),
    "a box": ("It is <|begin_of_box|> 3 <|end_of_box|>.", "3"),
    "not closed": ("<answer>B", "<answer>B"),
    "none": (" B ", " B "),
}


@for_each("answer, found", MARKED.values(), ids=MARKED)
def test_marked_answers(answer: str, found: str) -> None:
    assert run("marked_answer", [[answer]]) == [[found]]
