"""Metrics that judge a free answer against the truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat.verifiers import ContainsVerifier, NumericToleranceVerifier
from lmms_eval.errors import UsageError
from lmms_eval.metrics.answers import contains, mcq_match, numeric
from lmms_eval.metrics.math_answers import math_verify
from lmms_eval.metrics.speech import wer
from tests.cases import for_each

NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(str) | st.text("0123456789.,-% x", max_size=12)


@for_each(
    ("truth", "answer", "wanted"),
    [("B", "b", 1.0), ("(b).", "I pick B", 1.0), ("B", "A or maybe C", 0.0), ("red", "Red.", 1.0), ("A", "", 0.0)],
)
def test_the_choice_of_an_answer(truth: str, answer: str, wanted: float) -> None:
    assert mcq_match([truth], [answer]) == wanted


def test_other_letters() -> None:
    assert mcq_match(["J"], ["It is J because"]) == 0.0
    assert mcq_match(["J"], ["It is J because"], choices=["I", "J"]) == 1.0


@given(NUMBERS, NUMBERS)
def test_metric_and_verifier_agree_on_numbers(truth: str, answer: str) -> None:
    assert numeric([truth], [answer]) == NumericToleranceVerifier()("", answer, truth).score


@given(st.text(max_size=5), st.text(max_size=9), st.booleans())
def test_metric_and_verifier_agree_on_parts(truth: str, answer: str, ignore_case: bool) -> None:
    assert (
        contains([truth], [answer], ignore_case=ignore_case) == ContainsVerifier(ignore_case)("", answer, truth).score
    )


def test_negative_tolerances_are_refused() -> None:
    with pytest.raises(UsageError, match="rel_tol"):
        numeric(["1"], ["1"], rel_tol=-1.0)


@for_each(("truth", "answer"), [(None, "None"), (None, None), ("None", None), (None, r"\boxed{None}")])
def test_a_null_equals_no_answer_in_mathematics(truth, answer):
    assert math_verify([truth], [answer]) == 0.0


@for_each("metric", [contains, mcq_match, numeric, math_verify, wer])
def test_nothing_to_compare_is_an_error(metric) -> None:
    with pytest.raises(UsageError, match=metric.__name__):
        metric(references=[], predictions=["a"])
