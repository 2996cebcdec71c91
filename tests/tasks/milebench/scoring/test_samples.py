from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, SampleScore
from lmms_eval.tasks.milebench.scoring.samples import score_sample
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, reply_text, reply_value

CHOICE = DatasetFacts("TQA", "multi-choice")
ROUGE = DatasetFacts("IEdit", "open-ended")
NEEDLE = DatasetFacts("TextNeedleInAHaystack")
DIALOGUE = DatasetFacts("MMCoQA")


def sample(gold: Any, choices: list[Any] | None = None, images: int = 2) -> dict[str, Any]:
    instance = {"images_path": ["x.jpg"] * images, "choice_list": choices}
    return {"sample_id": 7, "response": gold, "task_instance": instance, "image_quantity_level": "Many"}


def test_a_choice() -> None:
    found = score_sample(CHOICE, sample("No-one", ["Yes", "No-one"], images=40), "The answer is B")
    assert found == SampleScore(
        "7", "Accuracy", "Many", 40, score=0, fixed=1, step="letters collected", fixed_step="statement",
        extracted="AB", fixed_extracted="B", normalised=("the answer is b", "no one", ("yes", "no one")),
    )  # fmt: skip


def test_no_answer_is_c_officially_and_wrong_in_the_fixed_rules() -> None:
    found = score_sample(CHOICE, sample("z", ["x", "y", "z"]), " ?\n")
    assert (found.score, found.fixed, found.is_empty, found.step, found.fixed_step) == (1, 0, True, "empty", "empty")


def test_equal_options_are_all_right_in_the_fixed_rules() -> None:
    choices = ["same", "SAME", "x"]
    found = [score_sample(CHOICE, sample("SAME", choices), answer) for answer in ("A", "B", "C")]
    assert [(one.score, one.fixed) for one in found] == [(1, 1), (0, 1), (0, 0)]


def test_the_fixed_rules_follow_the_annotation() -> None:
    found = score_sample(CHOICE, sample("x", ["x", "y"]), "B", gold="y")
    assert (found.score, found.fixed) == (1, 0)


def test_a_reference_that_only_normalisation_finds() -> None:
    found = score_sample(CHOICE, sample("left 1", ["right", "left-1"]), "B")
    assert (found.score, found.fixed) == (1, 1)


def test_options_that_are_no_texts() -> None:
    assert score_sample(CHOICE, sample(3, [3, 4]), "A").score == 1


@for_each("answer", ["4827", '"4827"', "it is 4827!"])
def test_a_needle(answer: str) -> None:
    found = score_sample(NEEDLE, sample("4827"), answer)
    assert (found.score, found.fixed, found.extracted) == (1, 1, None)


@for_each("answer", ["secret:4827", "48275", "4 827", ""])
def test_no_needle(answer: str) -> None:
    assert score_sample(NEEDLE, sample("4827"), answer).score == 0


def test_a_substring_officially_and_a_word_in_the_fixed_rules() -> None:
    found = [score_sample(DIALOGUE, sample("red"), answer) for answer in ("scored", "It was Red.", "")]
    assert [(one.score, one.fixed) for one in found] == [(1, 0), (1, 1), (0, 0)]
    empty = score_sample(DIALOGUE, sample("..."), "anything")
    assert (empty.score, empty.fixed) == (1, 0)


def test_rouge() -> None:
    found = score_sample(ROUGE, sample("a b c d e"), "e d c b a")
    assert found.score == pytest.approx(0.2, abs=1e-8)
    assert found.sequence == pytest.approx(0.2)
    assert (found.metric, found.step, found.fixed) == ("Rouge-L f", "rouge-l", found.score)


def test_rouge_without_the_slips_of_normalisation() -> None:
    found = score_sample(ROUGE, sample("a-b costs 1,000"), "a b costs")
    assert found.score == pytest.approx(1 / 3, abs=1e-6)  # "ab costs 1000" against "a b costs"
    assert found.fixed == pytest.approx(6 / 7, abs=1e-6)


def test_an_empty_prediction_and_one_without_a_sentence_score_0() -> None:
    empty = score_sample(ROUGE, sample("a"), " . ")
    assert (empty.score, empty.note, empty.is_empty, type(empty.score)) == (0, "", True, int)
    stops = score_sample(ROUGE, sample("a"), "." * 33)
    assert (stops.score, stops.is_empty, type(stops.score)) == (0, False, float)
    assert "no sentence" in stops.note


@for_each(
    ("facts", "gold", "choices", "answer", "reason"),
    [
        (CHOICE, "q", ["x", "y"], "x", "not one of the 2 options"),
        (CHOICE, "x", [], "x", "not one of the 0 options"),
        (CHOICE, "x", None, "x", "no choice_list"),
        (CHOICE, "x", ["x"], None, "prediction is null"),
        (CHOICE, "x", ["x"], 3, "prediction is a int"),
        (ROUGE, None, None, "x", "reference answer is null"),
        (ROUGE, "...", None, "x", "empty after normalisation"),
        (ROUGE, "...", None, "", "empty after normalisation"),
        (NEEDLE, "x", None, ["x"], "prediction is a list"),
    ],
)
def test_what_fails_a_sample(facts: DatasetFacts, gold: Any, choices: Any, answer: Any, reason: str) -> None:
    found = score_sample(facts, sample(gold, choices), answer)
    assert reason in str(found.error)
    assert (found.score, found.fixed, found.sequence) == (None, None, None)


def test_a_null_reference_in_the_prediction_file_fails() -> None:
    assert "null" in str(score_sample(CHOICE, sample("x", ["x"]), "x", gold=None).error)


@for_each("question_type", ["yes-no", None, ["multi-choice"]])
def test_an_unknown_question_type_is_an_error(question_type: Any) -> None:
    with pytest.raises(DataError, match="question_type"):
        score_sample(DatasetFacts("TQA", question_type), sample("x"), "x")


def test_the_name_comes_before_the_question_type() -> None:
    assert DatasetFacts("ImageNeedleInAHaystack", "yes-no").rule == "token"
    assert DatasetFacts("MyMMCoQA-v2", "open-ended").rule == "substring"


@FUZZ
@given(st.sampled_from([CHOICE, ROUGE, NEEDLE, DIALOGUE]), reply_value, reply_value, st.lists(reply_text, max_size=4))
def test_any_answer_is_scored_or_failed(facts: DatasetFacts, answer: Any, gold: Any, choices: list[str]) -> None:
    found = score_sample(facts, sample(gold, [*choices, gold]), answer)
    if found.error is not None:
        assert found.score is None
    else:
        assert found.score is not None
        assert 0 <= found.score <= 1
        assert found.fixed is not None
        assert 0 <= found.fixed <= 1
