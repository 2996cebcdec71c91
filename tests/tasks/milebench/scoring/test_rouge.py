from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.milebench.scoring.samples import common_words, distinct_word_rouge, sequence_rouge, split_sentences
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, MEGABYTE, NASTY, cpu_limit, reply_text

PERFECT = 0.999999995
words = st.lists(st.sampled_from("abcde"), max_size=12)


def table_of(gold: list[str], prediction: list[str]) -> list[list[int]]:
    table = [[0] * (len(prediction) + 1) for _ in range(len(gold) + 1)]
    for i, one in enumerate(gold, 1):
        for j, other in enumerate(prediction, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if one == other else max(table[i - 1][j], table[i][j - 1])
    return table


def traced(gold: list[str], prediction: list[str]) -> set[str]:
    """The back-trace over the whole table."""
    table, i, j, found = table_of(gold, prediction), len(gold), len(prediction), set()
    while i and j:
        if gold[i - 1] == prediction[j - 1]:
            found.add(gold[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


@FUZZ
@given(words, words)
def test_the_bit_vectors_hold_the_table(gold: list[str], prediction: list[str]) -> None:
    assert common_words(gold, prediction) == traced(gold, prediction)


@FUZZ
@given(words, words)
def test_foreign_words_of_the_prediction_change_nothing(gold: list[str], prediction: list[str]) -> None:
    known = [word for word in prediction if word in gold]
    assert traced(gold, known) == traced(gold, prediction)


@FUZZ
@given(st.lists(words, max_size=4), st.lists(words, max_size=4))
def test_the_union_over_all_pairs_of_sentences(gold: list[list[str]], prediction: list[list[str]]) -> None:
    texts = [".".join(" ".join(sentence) or " " for sentence in text) for text in (prediction, gold)]
    found = distinct_word_rouge(*texts)
    if not gold or not prediction:
        assert found is None
        return
    sentences = [split_sentences(text) for text in texts]
    common = set().union(*(traced(one, other) for one in sentences[1] for other in sentences[0]))
    predicted, wanted = ({word for sentence in text for word in sentence} for text in sentences)
    precision, recall = len(common) / len(predicted), len(common) / len(wanted)
    assert found == 2.0 * ((precision * recall) / (precision + recall + 1e-8))


@FUZZ
@given(words.filter(bool), words)
def test_sequence_rouge_is_the_usual_f1(gold: list[str], prediction: list[str]) -> None:
    length = table_of(gold, prediction)[-1][-1]
    precision, recall = length / max(len(prediction), 1), length / len(gold)
    wanted = 2 * precision * recall / (precision + recall) if length else 0.0
    assert sequence_rouge(" ".join(prediction), " ".join(gold)) == pytest.approx(wanted, rel=1e-12)


@for_each(
    ("prediction", "gold", "score"),
    [
        ("a a a a", "a", PERFECT),
        ("e d c b a", "a b c d e", 0.2),
        ("1000 a b", "1000 a b", PERFECT),
        ("x", "a", 0.0),
        ("3.5", "3.5", PERFECT),
    ],
)
def test_distinct_words(prediction: str, gold: str, score: float) -> None:
    assert distinct_word_rouge(prediction, gold) == pytest.approx(score, abs=1e-8)


def test_no_sentence_is_no_score() -> None:
    assert distinct_word_rouge("...", "a") is None
    assert distinct_word_rouge("a", ".") is None
    assert distinct_word_rouge(" ", " ") == pytest.approx(PERFECT)  # a sentence of one empty word


def test_thousands_of_words_need_no_deeper_stack() -> None:
    gold = " ".join(f"g{index}" for index in range(5000))
    with cpu_limit(1):
        assert distinct_word_rouge(gold, gold) == pytest.approx(PERFECT)
        assert sequence_rouge(gold, gold) == 1


@for_each("text", [*NASTY.values(), "a. " * (MEGABYTE // 3), "1.1" * (MEGABYTE // 3), "a b " * (MEGABYTE // 4)])
def test_a_megabyte(text: str) -> None:
    with cpu_limit(1):
        distinct_word_rouge(text, "a word 1 of b a. 9 more 1")
        sequence_rouge(text, "a word 1 of b a. 9 more 1")


@FUZZ
@given(reply_text, reply_text)
def test_scores_lie_between_0_and_1(prediction: str, gold: str) -> None:
    found = distinct_word_rouge(prediction, gold)
    assert found is None or 0 <= found <= 1
    assert 0 <= sequence_rouge(prediction, gold) <= 1
