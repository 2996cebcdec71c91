from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.metrics import captions
from lmms_eval.metrics.captions import (
    Caption,
    bleu_counts,
    bleu_errors,
    caption_tokens,
    cider,
    corpus_bleu,
    meteor,
    rouge_l,
)
from tests.cases import for_each

WORDS = ["a", "the", "cat", "dog", "runs", "sits", "on", "mat", "hill", "red", "green", "over"]
TOKENS = st.lists(st.sampled_from("abcde"), max_size=9)
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="the toolkit's tokenizer needs Java")


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(captions, "_known", {})


@pytest.fixture
def java(monkeypatch, tmp_path):
    """Puts a program of the given text in the place of Java."""

    def put(text: str) -> None:
        (tmp_path / "java").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "java").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")

    return put


def _corpus(seed, size=30):
    draw = random.Random(seed)

    def sentence():
        return draw.choices(WORDS, k=draw.randint(0, 9))

    return [Caption(sentence(), [sentence() for _ in range(draw.randint(1, 4))]) for _ in range(size)]


def test_cider_of_words_in_common():
    """One word of one caption alone: the cosine of single words is 1, that of longer runs 0."""
    assert cider([Caption(["a"], [["a"]]), Caption(["b"], [["c"]])]) == pytest.approx(10 / 4 / 2)


def test_a_perfect_corpus_of_different_captions_has_ten():
    sentences = ["a cat sits on a mat", "the dog runs over one hill", "two birds fly far away"]
    assert cider([Caption(text.split(), [text.split()]) for text in sentences]) == pytest.approx(10)


def test_one_item_has_no_weights():
    assert cider([Caption(["cat"], [["cat"]])]) == 0.0
    assert cider([]) == cider([Caption(["cat"], [[]]), Caption([], [[], []])]) == 0.0


def test_bounds_and_order_of_cider():
    corpus = _corpus(3)
    assert 0 <= cider(corpus) <= 10
    assert cider(corpus[::-1]) == pytest.approx(cider(corpus), rel=1e-12)


def test_repeating_a_word_does_not_help():
    reference = ["a", "red", "cat", "sits", "on", "the", "mat"]
    others = [Caption(["x", "y", "z", "u"], [["x", "y", "z", "u"]])]
    plain = cider([Caption(["a", "cat"], [reference]), *others])
    assert cider([Caption(["a", "cat", "cat", "cat", "cat", "cat", "cat", "cat"], [reference]), *others]) < plain


def test_bleu_takes_the_nearest_length_and_clips_by_the_best_reference():
    counts = bleu_counts(["the", "the", "cat"], [["the", "cat"], ["the", "the", "x", "y"]], 1)
    assert counts["correct"] == [3]
    assert corpus_bleu([counts], 1) == pytest.approx(1)
    longer = bleu_counts(["a"], [["a", "b", "c"]], 1)
    assert corpus_bleu([longer], 1) == pytest.approx(2.718281828 ** (1 - 3), rel=1e-6)


def test_bleu_agrees_with_sacrebleu_where_all_orders_match():
    from sacrebleu import corpus_bleu as reference_bleu

    predictions = ["the red dog runs over the hill", "a cat sits on the mat and sleeps"]
    references = ["the red dog runs over a hill today", "a cat sits on the mat and eats"]
    wanted = reference_bleu(predictions, [references], tokenize="none", smooth_method="none").score
    counts = [bleu_counts(p.split(), [r.split()], 4) for p, r in zip(predictions, references, strict=True)]
    assert 100 * corpus_bleu(counts, 4) == pytest.approx(wanted, rel=1e-6)


@given(TOKENS, TOKENS, st.integers(1, 4))
def test_bounds_and_identity_of_bleu(prediction, reference, order):
    assert 0 <= corpus_bleu([bleu_counts(prediction, [reference], order)], order) <= 1
    if len(reference) >= order:
        assert corpus_bleu([bleu_counts(reference, [reference], order)], order) == pytest.approx(1)


@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_does_not_count_in_bleu(pairs, draw):
    counts = [bleu_counts(prediction, [reference], 4) for prediction, reference in pairs]
    shuffled = draw.sample(counts, len(counts))
    assert corpus_bleu(counts, 4) == corpus_bleu(shuffled, 4)


@needs_java
def test_tokens_are_those_of_the_toolkits_own_wrapper():
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    texts = [
        "A man, riding a well-known horse.",
        "It's the dog’s; they don't!",
        '(3.5 km) -- "far"',
        " . ",
        "",
        "北京 é ñ \U0001f600 café…",
        "call (123) 456-7890 now, 1 1/2",
        "http://a.b/c?d=e costs $5.00",
        "",
    ]
    wanted = PTBTokenizer().tokenize({k: [{"caption": text}] for k, text in enumerate(texts)})
    found = caption_tokens(texts)
    assert found == [tuple(wanted[k][0].split()) for k in range(len(texts))]
    assert found[:2] == [
        ("a", "man", "riding", "a", "well-known", "horse"),
        ("it", "'s", "the", "dog", "'s", "they", "do", "n't"),
    ]


@needs_java
def test_no_text_reaches_into_its_neighbours():
    hostile = "x\n\ny\r\u2028z\x0b\x85w\x00\x1c\ud83d\ufeff"
    found = caption_tokens(["before", hostile, "\n", "behind"])
    assert (found[0], found[2], found[3]) == (("before",), (), ("behind",))
    assert found[1][:4] == ("x", "y", "z", "w")


def test_without_java_nothing_is_tokenised(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotEvaluated, match="install a Java runtime"):
        caption_tokens(["a cat"])


@pytest.mark.parametrize(
    ("program", "message"),
    [("exit 1", "exit status 1"), ("echo one; echo two", "3 lines for 1 texts"), ("printf '\\377'", "decode")],
)
def test_a_tokenizer_that_fails_gives_no_empty_captions(java, program, message):
    java(program)
    with pytest.raises(NotEvaluated, match=message):
        caption_tokens(["a cat"])


def test_a_tokenizer_that_hangs_is_ended(java, monkeypatch):
    monkeypatch.setattr(captions, "_LEAST_SECONDS", 0.2)
    java("exec sleep 60")
    with pytest.raises(NotEvaluated, match="timed out"):
        caption_tokens(["a cat"])


def test_what_is_known_is_not_asked_for_again(java, monkeypatch, tmp_path):
    java(f"echo >> {tmp_path}/starts\nexec cat")
    assert caption_tokens(["a b", "c", "a b"]) == [("a", "b"), ("c",), ("a", "b")]
    assert caption_tokens(["c", "d"]) == [("c",), ("d",)]
    assert caption_tokens(["d", "a b"]) == [("d",), ("a", "b")]
    assert len(Path(tmp_path / "starts").read_text()) == 2
    monkeypatch.setattr(captions, "_MOST_KNOWN", 3)
    assert caption_tokens(["e", "c"]) == [("e",), ("c",)]
    assert set(captions._known) == {"e", "c"}


@for_each("seed", range(3))
def test_rouge_is_the_toolkits(seed):
    from pycocoevalcap.rouge.rouge import Rouge

    for one in [*_corpus(seed), Caption([], [[], ["a"]])]:
        wanted = Rouge().calc_score([" ".join(one.prediction)], [" ".join(words) for words in one.references])
        assert rouge_l(one) == pytest.approx(wanted, rel=1e-12)


def test_errors_of_bleu_are_those_of_leaving_one_out():
    counts = [bleu_counts(one.prediction, one.references, 4) for one in _corpus(5, 12)]
    for order, found in enumerate(bleu_errors(counts), 1):
        without = [corpus_bleu(counts[:place] + counts[place + 1 :], order) for place in range(len(counts))]
        middle = sum(without) / len(without)
        wanted = (11 / 12 * sum((one - middle) ** 2 for one in without)) ** 0.5
        assert found == pytest.approx(wanted, rel=1e-6)
    assert bleu_errors(counts[:1]) == [None] * 4


def test_a_meteor_that_fails_gives_no_score(java):
    one = [Caption(["a"], [["a"]])]
    java("exit 3")
    with pytest.raises(NotEvaluated, match="METEOR"):
        meteor(one)
    java("read a; echo 1; read b; echo 0.5")
    with pytest.raises(NotEvaluated, match="ended with code 0"):
        meteor(one)
    java("read a; echo 1; read b; echo x; echo y")
    with pytest.raises(NotEvaluated, match="float"):
        meteor(one)


def test_meteor_is_asked_for_counts_and_then_for_scores(java):
    java(
        """read a; echo "$a"; read b; echo 0.25; echo 0.75; case $b in *'EVAL ||| SCORE ||| a ||| b') sleep 9;; esac"""
    )
    assert meteor([Caption(["b"], [["a", "|||"]])]) == (0.75, [0.25])
