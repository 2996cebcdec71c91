from __future__ import annotations

import math

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.metrics import choice
from lmms_eval.metrics.choice import ChoiceItem, LikelihoodItem

ITEM = ChoiceItem((4.0, 3.0, 3.0), (False, False, True), ("longer text", "a", "b"), (1,), (2.0, 0.0, 1.5))


def test_the_smallest_loss_wins_and_the_first_on_ties() -> None:
    assert choice.acc(ITEM) == 1
    assert choice.acc_norm(ITEM) == 0
    assert choice.acc_mutual_info(ITEM) == 0
    assert choice.exact_match(ITEM) == 0
    assert choice.label_pair(ITEM) == (1, 1)


def test_several_right_choices() -> None:
    item = ChoiceItem((1.0, 2.0), (False, True), ("a", "b"), (0, 1))
    assert choice.acc(item) == choice.exact_match(item) == 1


def test_a_gold_outside_the_choices_is_never_right() -> None:
    item = ChoiceItem((1.0, 2.0), (True, True), ("a", "b"), (7,))
    assert choice.acc(item) == choice.acc_norm(item) == choice.exact_match(item) == 0


def test_an_empty_choice_never_wins_by_length() -> None:
    assert choice.acc_norm(ChoiceItem((0.0, 5.0), (False, False), ("", "b"), (1,))) == 1


def test_brier_probabilities_sum_to_one() -> None:
    gold, probabilities = choice.brier_score(ITEM)
    assert gold == 1
    assert math.fsum(probabilities) == pytest.approx(1)
    assert probabilities[1] == probabilities[2] > probabilities[0]


def test_shapes_are_checked() -> None:
    with pytest.raises(UsageError, match="one each"):
        ChoiceItem((1.0,), (True, False), ("a",), (0,))
    with pytest.raises(UsageError, match="acc_mutual_info"):
        choice.acc_mutual_info(ChoiceItem((1.0,), (True,), ("a",), (0,)))


def test_likelihood_items() -> None:
    item = LikelihoodItem(-2.0, True, 3, 12)
    assert choice.greedy(item) == 1
    assert choice.perplexity(item) == -2
    assert choice.word_perplexity(item) == (-2.0, 3)
    assert choice.byte_perplexity(item) == (-2.0, 12)


def test_acc_all_needs_every_answer_of_a_question() -> None:
    def doc(question: int, label: int) -> dict[str, object]:
        return {"idx": {"paragraph": 0, "question": question}, "label": label}

    items = [(doc(0, 1), True), (doc(0, 0), False), (doc(1, 1), True), (doc(1, 0), True)]
    assert choice.all_right_by_question(items) == [1.0, 0.0]
    assert choice.acc_all(items) == 0.5
    assert choice.acc_all([(predicted, doc) for doc, predicted in items]) == 0.5  # as lm-eval has them
    with pytest.raises(UsageError, match=r"idx\.paragraph"):
        choice.acc_all([({}, True)])
