"""RealWorldQA: multiple choice and short answers about scenes, many of them seen from a car."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.tasks._task_utils.question import Doc, framed
from lmms_eval.utils.answer_reading import WHOLE_ANSWER, note_reading

CHOICES = ("A", "B", "C", "D")
_INSTRUCTION = "Please answer directly with only the letter of the correct option and nothing else."
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return the question in its frame; one with an end takes the place of the question's own instruction."""
    question = doc["question"].strip()
    if (lmms_eval_specific_kwargs or {}).get("post_prompt"):
        question = question.replace(_INSTRUCTION, "")
    return framed(question, lmms_eval_specific_kwargs)


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """Compare letters where the reference answer is one, else texts; the fixed metric reads number words as digits."""
    gold = doc["answer"].strip()
    if gold.upper() in CHOICES:
        right = float(extract_mcq_answer(results[0], CHOICES) == gold.upper())
        return {"exact_match": right, "exact_match_fixed": right}
    note_reading(WHOLE_ANSWER)
    said, gold = results[0].lower().strip().rstrip("."), gold.lower()
    fixed = _DIGITS.get(said, said) == _DIGITS.get(gold, gold)
    return {"exact_match": float(said == gold), "exact_match_fixed": float(fixed)}
