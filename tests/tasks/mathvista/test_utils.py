"""MathVista: what is asked, extracted, rounded and compared."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.errors import ItemError, UsageError
from lmms_eval.tasks.mathvista.utils import aggregate, doc_to_judge, doc_to_text, process_results
from tests.cases import for_each

FORMAT = {"shot_type": "format-prompt"}
FLOAT = {
    "pid": "1", "question": "How long?", "query": "How long?", "unit": "cm", "choices": None, "precision": 3.0,
    "answer": "1.234", "question_type": "free_form", "answer_type": "float", "metadata": {"skills": ["a", "b"]},
}  # fmt: skip
CHOICE = {
    **FLOAT, "question_type": "multi_choice", "answer_type": "text", "choices": ["11 cm", "12 cm", "2 m"],
    "answer": "12 cm", "precision": None,
}  # fmt: skip


def scored(doc: Mapping[str, Any], answer: str, reply: str | None = None) -> Any:
    verdicts = {} if reply is None else {"extraction": Verdict("extraction", reply, True, "j")}
    return process_results(doc, [answer], verdicts)


@for_each(
    ("precision", "hint"),
    [
        (3.0, "Answer the question using a single floating-point number with three decimal places."),
        (None, "Answer the question using a single floating-point number."),
    ],
)
def test_any_number_of_places_can_be_asked_for(precision: float | None, hint: str) -> None:
    assert doc_to_text({**FLOAT, "precision": precision}, FORMAT) == f"How long? (Unit: cm)\n{hint}"


def test_examples_have_the_stated_places() -> None:
    assert "e.g., 1.234, 1.345, 1.456, at" in doc_to_text(FLOAT, {"shot_type": "step-by-step"})


@for_each("settings", [{"shot_type": "code"}, {**FORMAT, "use_ocr": True}, {}])
def test_forms_that_are_not_described_are_refused(settings: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError, match="shot_type"):
        doc_to_text(FLOAT, settings)


@for_each("changes", [{"question_type": "multi_choice"}, {"question_type": "multi_choice", "choices": []}])
def test_a_question_without_its_choices_fails(changes: Mapping[str, Any]) -> None:
    with pytest.raises(ItemError, match="'choices'"):
        scored({**FLOAT, **changes}, "x", "A")


def test_an_unknown_type_of_answer_fails() -> None:
    with pytest.raises(ItemError, match="'poem'"):
        doc_to_text({**FLOAT, "answer_type": "poem"}, FORMAT)


def test_only_what_cannot_be_read_is_shown_to_the_judge() -> None:
    assert doc_to_judge(FLOAT, ["1.23400"]) == doc_to_judge(CHOICE, ["2 m"]) == doc_to_judge(FLOAT, [""]) == []
    (question,) = doc_to_judge(FLOAT, ["About 1.2."])
    assert question["prompt"].endswith("How long?\n\nAbout 1.2.\n\nExtracted answer: ")
    found = scored(FLOAT, "About 1.2.")
    assert isinstance(found["llm_as_judge_eval"], Unscored)
    assert found["submission"]["response"] == "About 1.2."


@for_each(
    ("reply", "chosen"), [("(b)", "12 cm"), ("B", "12 cm"), ("b", "2 m"), ("12cm", "12 cm"), ("", "2 m"), ("D", "2 m")]
)
def test_a_letter_or_the_most_similar_text_names_a_choice(reply: str, chosen: str) -> None:
    assert scored(CHOICE, "I think so", reply)["llm_as_judge_eval"]["prediction"] == chosen


def test_the_judges_text_is_told_where_it_was_used() -> None:
    task = SimpleNamespace(prompts=SimpleNamespace(kwargs={}))
    for answer, is_told in (("1.234", False), ("About 1.234.", True)):
        row = scored(FLOAT, answer, "1.234")["llm_as_judge_eval"]
        found = aggregate([row, {**row, "true_false": False}], task)
        assert ("judge_texts" in found.details) == is_told
        assert found.value == 50.0
        assert {name: one.n for name, one in found.sub_scores["skills"].items()} == {"a": 2, "b": 2}
    assert aggregate([], task).value is None


def test_places_are_a_whole_number_here_and_none_in_the_reference() -> None:
    found = scored(FLOAT, "1.2341")
    assert found["llm_as_judge_eval"]["true_false"] is True
    assert found["llm_as_judge_eval_reference"]["true_false"] is False
    assert scored({**FLOAT, "precision": None, "answer": "0.60"}, "0.6")["llm_as_judge_eval"]["true_false"] is True


@for_each("answer", ["9" * 100_000, "inf", "nan", "١٫٢", "no idea", "<think>"])
def test_odd_answers_are_wrong_and_nothing_worse(answer: str) -> None:
    for kind in ("integer", "float", "list"):
        found = scored({**FLOAT, "answer_type": kind}, answer, answer[:256])
        assert found["llm_as_judge_eval"]["true_false"] is False
