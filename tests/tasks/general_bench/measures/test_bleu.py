from __future__ import annotations

import math
import random
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.text_math import (
    brevity_penalty,
    fallback_tokens,
    sentence_bleu,
    tokenizer_label,
    treebank_tokens,
    word_tokenizer,
    word_tokens,
)
from tests.parity.vectors import DATA_DIR

NLTK_DATA = DATA_DIR / "nltk_data"
TOKENS = st.lists(st.sampled_from("abcde"), max_size=9)


def test_of_one_order_is_clipped_precision_with_brevity():
    # "the" counts twice at most; 4 tokens against 6
    found = sentence_bleu(["the", "the", "the", "cat"], ["the", "cat", "on", "the", "mat", "today"], 1)
    assert found == pytest.approx(math.exp(1 - 6 / 4) * 3 / 4)


def test_method_4_fills_orders_without_a_match():
    # 3 tokens, unigrams 2/3, no bigram (2) or trigram (1) in common
    first, second = math.log(3) / (2 * 5) / 2, math.log(3) / (4 * 5) / 1
    assert sentence_bleu(list("abc"), list("bax"), 3) == pytest.approx((2 / 3 * first * second) ** (1 / 3))


def test_nothing_in_common_is_zero():
    assert sentence_bleu([], ["a"], 4) == sentence_bleu(["b"], ["a"], 4) == brevity_penalty(0, 3) == 0.0


def test_agrees_with_nltk():
    scores = pytest.importorskip("nltk.translate.bleu_score", reason="needs nltk")
    smoothing = scores.SmoothingFunction().method4
    draw = random.Random(5)
    for _ in range(300):
        prediction, reference = (draw.choices("abcd", k=draw.randint(low, 9)) for low in (0, 1))
        for order in range(1, 5):
            wanted = scores.sentence_bleu([reference], prediction, [1 / order] * order, smoothing)
            assert sentence_bleu(prediction, reference, order) == pytest.approx(wanted, abs=1e-12)


@given(TOKENS, TOKENS, st.integers(1, 4))
def test_bounds_and_identity(prediction, reference, order):
    assert 0 <= sentence_bleu(prediction, reference, order) <= 1
    if len(reference) >= order:
        assert sentence_bleu(reference, reference, order) == pytest.approx(1)


def test_words_without_data_are_those_between_spaces(monkeypatch, tmp_path):
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    assert word_tokenizer() == tokenizer_label() == "white-space"
    assert word_tokens("It's  here.", "white-space") == fallback_tokens("It's here.") == ["It's", "here."]
    with pytest.raises(NotEvaluated, match="fetch nltk"):
        word_tokens("It's here.", "treebank")


@pytest.mark.skipif(not NLTK_DATA.is_dir(), reason=f"no NLTK data in {NLTK_DATA}")
def test_words_with_data_are_those_of_the_treebank(monkeypatch):
    pytest.importorskip("nltk")
    monkeypatch.setenv("NLTK_DATA", str(NLTK_DATA))
    assert word_tokenizer() == "treebank"
    assert tokenizer_label() == f"treebank (NLTK {metadata.version('nltk')})"
    assert word_tokens("It's here.", "treebank") == ["It", "'s", "here", "."]
    assert treebank_tokens("No. It is.", str(NLTK_DATA))[-1] == "."
