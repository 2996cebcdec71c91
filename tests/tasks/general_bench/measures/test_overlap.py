from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.text_math import labels, micro_f1, micro_f1_counts, token_f1

TEXTS = st.text(alphabet="ab c<p>", max_size=20)


def test_overlap_counts_distinct_tokens_and_lengths_count_all():
    # {"a", "b"} in common, 3 and 4 tokens: P = 2/3, R = 2/4
    assert token_f1("a a b", ["a b b c"]) == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))


def test_case_and_punctuation_count():
    assert token_f1("The dog.", ["the dog"]) == 0.0


def test_best_reference_counts_and_empty_sides_are_zero():
    assert token_f1("a", ["b", "a"]) == 1.0
    assert token_f1("", ["a"]) == token_f1("a", [""]) == token_f1("", [""]) == token_f1("a", []) == 0.0


def test_labels_are_sets_between_marks_of_the_stripped_text():
    assert labels(" a<p>b <p>a\n") == {"a", "b "} | {"a"}
    assert micro_f1_counts("a<p>b", "b<p>c<p>d") == (1, 1, 2)


def test_two_empty_texts_are_a_true_positive():
    assert micro_f1_counts("", " ") == (1, 0, 0)


def test_micro_f1_of_summed_counts():
    assert micro_f1([(1, 1, 2), (2, 0, 0)]) == pytest.approx(2 * 3 / (2 * 3 + 1 + 2))
    assert micro_f1([(0, 5, 0)]) == 0.0


@given(TEXTS, TEXTS)
def test_bounds_symmetry_and_identity(first, second):
    counts, swapped = micro_f1_counts(first, second), micro_f1_counts(second, first)
    assert 0 <= micro_f1([counts]) <= 1
    assert counts == (swapped[0], swapped[2], swapped[1])
    assert micro_f1([micro_f1_counts(first, first)]) == 1
    assert 0 <= token_f1(first, [second]) <= 1
