from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.text_math import anls, word_error_rate
from tests.cases import for_each


@for_each(
    ("hypothesis", "reference", "expected"),
    [
        ("the cat sat", "the cat sat", 0),
        ("the dog sat", "the cat sat", 1 / 3),
        ("cat sat", "the cat sat", 1 / 3),
        ("the the cat sat down", "the cat sat", 2 / 3),
        ("", "the cat", 1),
        ("a b c d e", "a b", 1.5),
        ("The cat", "the cat", 0.5),
        ("", "", 0),
        ("a b", " ", 2),
    ],
)
def test_word_error_rate_of_hand_cases(hypothesis, reference, expected):
    assert word_error_rate(hypothesis, reference) == pytest.approx(expected)


def test_word_error_rate_agrees_with_jiwer():
    jiwer = pytest.importorskip("jiwer", reason="needs jiwer")
    draw = random.Random(4)
    for _ in range(200):
        hypothesis, reference = (" ".join(draw.choices("abcd", k=draw.randint(0, 8))) for _ in range(2))
        assert word_error_rate(hypothesis, reference) == pytest.approx(jiwer.wer(reference, hypothesis))


@for_each(
    ("prediction", "references", "expected"),
    [
        (" Coca Cola ", ["coca cola"], 1),
        ("cola", ["colt", "xxxx"], 0.75),
        ("ab", ["ax"], 0.5),
        ("abc", ["axx"], 0),
        ("", [""], 1),
        ("a", [""], 0),
        ("a", [], 0),
    ],
)
def test_anls_of_hand_cases(prediction, references, expected):
    assert anls(prediction, references) == pytest.approx(expected)


@given(st.text(max_size=12), st.text(max_size=12))
def test_anls_bounds_and_identity(first, second):
    assert anls(first, [first]) == 1
    score = anls(first, [second])
    assert score == 0 or 0.5 <= score <= 1
