from __future__ import annotations

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures import text_math as module
from lmms_eval.tasks.general_bench.measures.text_math import common_length, rouge, rouge_tokens

pytest.importorskip("nltk", reason="needs nltk's stemmer")
TEXTS = st.text(alphabet="ab c.,é", max_size=30)
KINDS = ("rouge1", "rouge2", "rougeL")


def test_only_latin_letters_and_digits_are_words_and_long_ones_are_stemmed():
    assert rouge_tokens("Running, the DOGS ran 42-fold — 猫 naïve") == [
        "run", "the", "dog", "ran", "42", "fold", "na", "ve",
    ]  # fmt: skip


def test_of_a_worked_case():
    prediction, reference = "the cat sat on the mat", "the cat lay on a mat"
    # common: the, cat, on, mat; bigrams: "the cat"; subsequence: the cat on mat
    assert rouge(prediction, reference, "rouge1") == pytest.approx(4 / 6)
    assert rouge(prediction, reference, "rouge2") == pytest.approx(1 / 5)
    assert rouge(prediction, reference, "rougeL") == pytest.approx(4 / 6)


def test_other_scripts_score_zero():
    assert [rouge("一只猫", "一只猫", "rouge1"), rouge("", "a", "rougeL"), rouge("a", "a", "rouge2")] == [0.0] * 3


def test_subsequences_agree_with_the_table():
    def by_table(first, second):
        row = [0] * (len(second) + 1)
        for one in first:
            new = [0]
            for j, other in enumerate(second):
                new.append(row[j] + 1 if one == other else max(row[j + 1], new[-1]))
            row = new
        return row[-1]

    for first, second in [("abcbdab", "bdcaba"), ("", "a"), ("aaaa", "aa"), ("abc", "xyz")]:
        assert common_length(list(first), list(second)) == by_table(first, second)


@given(TEXTS, TEXTS)
def test_bounds_identity_and_symmetry(first, second):
    for kind in KINDS:
        assert 0 <= rouge(first, second, kind) <= 1
        assert rouge(first, second, kind) == pytest.approx(rouge(second, first, kind))
    if rouge_tokens(first):
        assert rouge(first, first, "rouge1") == rouge(first, first, "rougeL") == 1


def test_a_huge_word_is_not_stemmed():
    word = "a" * 2000 + "ing"
    assert rouge_tokens(word) == [word]


def test_without_nltk_it_is_not_evaluated(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("nltk"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    module._stemmer.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotEvaluated, match="nltk is missing"):
        rouge("walking", "walking", "rouge1")
