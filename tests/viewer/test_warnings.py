"""Sentences about a run's numbers."""

from __future__ import annotations

from typing import Any

from lmms_eval.viewer.numbers import _outcome_warnings
from tests.cases import for_each


def texts(**counts: Any) -> list[str]:
    return [warning["text"] for warning in _outcome_warnings("t", {"requested": 10, **counts})]


def test_replies_that_the_judge_owes_and_bounds_of_truncated_answers_are_said() -> None:
    bounds = {"acc,none": {"low": 0.25, "high": 0.75}, "f1,none": {"low": None, "high": None}}
    assert texts(judge_unread=3, truncation=bounds) == [
        "3 of 10 samples lack a readable reply of the judge",
        "acc,none lies between 0.25 and 0.75, whatever the truncated answers are worth",
    ]


def test_bounds_of_documents_without_a_score_are_given() -> None:
    bounds = {"acc,none": {"n": 3, "low": 0.25, "high": 0.75, "reason": ""}, "f1,none": {"n": 3, "reason": "no mean"}}
    assert texts(missing_bounds=bounds) == [
        "acc,none lies between 0.25 and 0.75, whatever documents without a score are worth"
    ]


@for_each("truncation", [None, [], "x", {"acc": None}, {"acc": [1]}, {"acc": {"low": "0", "high": 1}}])
def test_results_of_strangers_say_nothing_of_it(truncation: Any) -> None:
    assert texts(truncation=truncation) == []
